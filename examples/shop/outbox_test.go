//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retryjob"
)

// The second set-up: orders → outbox, whose queue is a SQLite file on a small disk → mail. The disk is full for a while, and
// the process is killed or suspended, as the seed says.
func TestNothingIsLostOnAFullDiskInAStorm(t *testing.T) {
	if *long == 0 {
		t.Skip("no storm: see README.md for its flags")
	}
	t.Parallel()
	disk := t.TempDir()
	size := fmt.Sprintf("size=%dm", 16+4*int(*long/time.Minute)) // that all jobs find room on
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, size); err != nil {
		t.Skip("no disk of its own:", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(disk, 0)) })
	h := newHouse(t)
	defer h.keepJournals()
	ports := freePorts(t, 4)
	names := []string{"mail", "outbox"}
	h.metrics = map[string]string{"mail": ports[0], "outbox": ports[1]}
	database := filepath.Join(disk, "jobs.db")
	h.settings = map[string][]string{
		"mail":   {"LISTEN=" + ports[2]},
		"outbox": {"LISTEN=" + ports[3], "MAIL=" + ports[2], "DATABASE=" + database},
	}
	h.startAll(names)

	j, err := openJournal(h.path("customers.jsonl"), "customers")
	require.NoError(t, err)
	defer j.file.Close()
	ctx, cancel := context.WithTimeout(t.Context(), *long*3/4) // a lost attempt is found a while later
	defer cancel()
	var customers sync.WaitGroup
	customers.Go(func() { orderMails(ctx, j, ports[3]) })

	rnd := rand.New(rand.NewPCG(*seed, 3))
	upTo := func(d time.Duration) time.Duration { return time.Duration(rnd.Int64N(int64(d))) }
	rest := func(d time.Duration) { pause(ctx.Done(), d) }
	full, kills := 0, 0
	for ctx.Err() == nil {
		rest(time.Second + upTo(2*time.Second))
		fill(t, disk)
		full++
		rest(upTo(2 * time.Second))
		switch rnd.IntN(3) {
		case 0: // it starts on a full disk
			h.procs["outbox"].kill()
			kills++
			h.procs["outbox"] = h.start("outbox")
		case 1:
			h.procs["outbox"].signal(syscall.SIGSTOP)
			rest(upTo(2 * time.Second))
			h.procs["outbox"].signal(syscall.SIGCONT)
		}
		rest(upTo(2 * time.Second))
		require.NoError(t, os.Remove(filepath.Join(disk, "filler")))
	}
	customers.Wait()
	h.procs["outbox"].awaitReady(t)

	var left []retryjob.Info
	took, ok := patient(3*time.Minute, func() bool {
		left = slices.DeleteFunc(readJobs(t, database), func(i retryjob.Info) bool { return i.Status.Final() })
		return len(left) == 0
	})
	if !ok {
		t.Log(h.procs["outbox"].stderr.String())
	}
	require.True(t, ok, "%d jobs have not ended: %v", len(left), left[:min(3, len(left))])
	h.stop(names)

	a := &audit{}
	for _, name := range append(names, "customers") {
		a.lines = append(a.lines, readJournal(t, h.path(name+".jsonl"))...)
	}
	infos := readJobs(t, database)
	jobs := map[string]bool{}
	for _, info := range infos {
		jobs[info.JobID] = true
	}
	var lost, silent []string
	said := map[string]int{}
	for _, l := range a.of("customers") {
		if l.What != "order" {
			continue
		}
		said[l.Status]++
		if l.Status == acknowledged && !jobs["mail-"+l.Ref] {
			lost = append(lost, l.Ref)
		}
		if l.Status == refused && jobs["mail-"+l.Ref] {
			silent = append(silent, l.Ref+": "+l.Err)
		}
	}
	a.note("the disk was full", fmt.Sprintf("%d times, and %d kills; the last job ended %.1fs later", full, kills, took.Seconds()), nil)
	a.note("an acknowledged mail is in the queue", fmt.Sprint(said), lost)
	a.note("a mail in the queue was acknowledged or is in doubt", fmt.Sprintf("%d jobs", len(infos)), silent)
	a.deliveries(infos)
	a.verdict(t)
}

// fill leaves no byte of the disk.
func fill(t *testing.T, disk string) {
	file, err := os.Create(filepath.Join(disk, "filler"))
	require.NoError(t, err)
	defer file.Close()
	for size := 1 << 20; size > 0; size /= 2 {
		for part := make([]byte, size); err == nil; {
			_, err = file.Write(part)
		}
		require.ErrorIs(t, err, syscall.ENOSPC)
		err = nil
	}
}

// orderMails orders mails one after the other until ctx ends, every other one with a key.
func orderMails(ctx context.Context, j *journal, outbox string) {
	c := customers{journal: j, shop: outbox, client: newCustomers(j, outbox, 0).client}
	for n := 0; ctx.Err() == nil; n++ {
		ref, keyed, work := fmt.Sprintf("%06d", n), n%2 == 0, context.Background()
		if keyed {
			work = retryhttp.WithWork(work, ref)
		}
		l := line{What: "order", Ref: ref}
		l.Status, l.Err = c.ask(work, ref, "/orders?order="+ref, keyed)
		j.add(l, nil)
		pause(ctx.Done(), 50*time.Millisecond)
	}
}
