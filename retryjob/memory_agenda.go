package retryjob

// agenda holds the jobs that wait, in the order in which they are to start: by due time, and by the order of enqueuing
// if that is the same. Jobs that were due when they came stand in a line, which is in that order by itself; the others
// in a heap. A job that is canceled stays here until its turn comes or such jobs are the most.
type agenda struct {
	line  []*job // from head on; nil before
	head  int
	heap  []turn
	stale int // jobs in line and heap that do not wait any more
}

// turn is a job in the heap, with the keys beside it so that a comparison reads no job.
type turn struct {
	due instant
	seq uint64
	job *job
}

func (t *turn) before(o *turn) bool { return t.due < o.due || t.due == o.due && t.seq < o.seq }

// enqueue adds a job that is due now and was enqueued after all others.
func (a *agenda) enqueue(j *job) {
	if a.head > 64 && a.head > len(a.line)/2 { // copied fewer times than taken
		n := copy(a.line, a.line[a.head:])
		clear(a.line[n:])
		a.line, a.head = a.line[:n], 0
	}
	a.line = append(a.line, j)
}

// wait adds any other job.
func (a *agenda) wait(j *job) {
	a.heap = append(a.heap, turn{j.at, j.seq, j})
	a.up(len(a.heap) - 1)
}

// next returns the job that is to start first, or nil if none waits.
func (a *agenda) next() *job {
	for a.head < len(a.line) && !a.line[a.head].waits() {
		a.leave()
		a.stale--
	}
	for len(a.heap) > 0 && !a.heap[0].job.waits() {
		a.pop()
		a.stale--
	}
	switch {
	case a.head == len(a.line) && len(a.heap) == 0:
		return nil
	case a.head == len(a.line) || len(a.heap) > 0 && a.heap[0].before(&turn{due: a.line[a.head].at, seq: a.line[a.head].seq}):
		return a.heap[0].job
	default:
		return a.line[a.head]
	}
}

// take removes j, which next has just returned.
func (a *agenda) take(j *job) {
	if a.head < len(a.line) && a.line[a.head] == j {
		a.leave()
	} else {
		a.pop()
	}
}

// forget notes that a job does not wait any more though its turn has not come.
func (a *agenda) forget() {
	a.stale++
	if a.stale < 1024 || a.stale < (len(a.line)-a.head+len(a.heap))/2 {
		return
	}
	line := a.line[:0]
	for _, j := range a.line[a.head:] {
		if j.waits() {
			line = append(line, j)
		}
	}
	clear(a.line[len(line):])
	a.line, a.head = line, 0
	heap := a.heap[:0]
	for _, t := range a.heap {
		if t.job.waits() {
			heap = append(heap, t)
		}
	}
	clear(a.heap[len(heap):])
	a.heap, a.stale = heap, 0
	for i := len(heap)/fan + 1; i >= 0; i-- {
		a.down(i)
	}
}

func (j *job) waits() bool { return j.status == Pending || j.status == WaitingRetry }

func (a *agenda) leave() {
	a.line[a.head] = nil
	a.head++
	if a.head == len(a.line) {
		a.line, a.head = a.line[:0], 0
	}
}

// fan is how many children a node of the heap has. Four turns are 96 bytes, two cache lines at most: a wider, lower heap
// waits for memory less often.
const fan = 4

func (a *agenda) pop() {
	last := len(a.heap) - 1
	a.heap[0], a.heap[last] = a.heap[last], turn{}
	a.heap = a.heap[:last]
	a.down(0)
}

func (a *agenda) up(i int) {
	t := a.heap[i]
	for i > 0 {
		parent := (i - 1) / fan
		if !t.before(&a.heap[parent]) {
			break
		}
		a.heap[i] = a.heap[parent]
		i = parent
	}
	a.heap[i] = t
}

func (a *agenda) down(i int) {
	if i >= len(a.heap) {
		return
	}
	t := a.heap[i]
	for {
		first, least := fan*i+1, -1
		for child := first; child < min(first+fan, len(a.heap)); child++ {
			if least < 0 || a.heap[child].before(&a.heap[least]) {
				least = child
			}
		}
		if least < 0 || !a.heap[least].before(&t) {
			break
		}
		a.heap[i] = a.heap[least]
		i = least
	}
	a.heap[i] = t
}
