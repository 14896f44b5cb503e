package retryhttp

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"slices"
)

// longestEvent is the largest part of a stream that FirstEvent reads. The first events of model services are below 2
// KiB.
const longestEvent = 64 << 10

// FirstEvent returns an Accept for services that answer with a stream of server-sent events and that may report a
// failure only in the stream. If the response is a 2xx with the Content-Type text/event-stream, the Accept reads the
// first event, which the caller reads again, and asks ok whether it begins a success. A nil ok means that any event
// does. So a stream that begins with an error is repeated, and a stream that has begun well is not. The request must
// have a key or be allowed by Repeat, since the service may have done work. Any other response is judged by its status.
//
// ok gets the lines of the event as they came, without the empty line that ends it. Blocks of comments alone, such as
// pings, are passed over. If 64 KiB have come before an event is complete, ok gets the lines so far. If the stream ends
// or breaks off before an event is complete, the response is not accepted. AttemptTimeout covers the wait for the event,
// and StallTimeout each Read.
func FirstEvent(ok func(event []byte) bool) func(*http.Response) bool {
	return func(resp *http.Response) bool {
		if !succeeded(resp.StatusCode) || !isEventStream(resp) {
			return succeeded(resp.StatusCode)
		}
		event, err := peekEvent(resp)
		if err != nil {
			return false
		}
		return ok == nil || ok(bytes.Clone(event)) // the caller reads the same bytes
	}
}

func isEventStream(resp *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return kind == "text/event-stream" && resp.Body != nil
}

// peeked is a body of which the beginning was read and is read again.
type peeked struct {
	io.Reader
	io.Closer
}

// peekEvent returns the first event of the body of resp, and puts the bytes that it has read back. It returns the error
// of a body which ended, with io.EOF too, before an event was complete.
func peekEvent(resp *http.Response) ([]byte, error) {
	body := resp.Body
	var begun beginning
	var err error
	complete := false
	for !complete && err == nil && len(begun.stream) < longestEvent {
		err = begun.read(body)
		complete = begun.scan()
	}
	rest := io.Reader(body)
	if err != nil {
		rest = failing{err}
	}
	resp.Body = &peeked{io.MultiReader(bytes.NewReader(begun.stream), rest), body}
	if complete {
		return begun.event(), nil
	}
	return begun.event(), err
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// beginning is the beginning of a stream, in which the first event is looked for. The lines of a stream end with LF, CR LF
// or CR (HTML, section 9.2.5). Each byte is looked at once, however few come at a time.
type beginning struct {
	stream   []byte
	block    int  // where the block of lines under way begins
	line     int  // where the line under way begins
	looked   int  // no line ends between line and this
	end      int  // of the block, if it is a complete event, otherwise 0
	hasField bool // the block has a line that is not a comment
}

// read reads a part of body.
func (b *beginning) read(body io.Reader) error {
	const part = 2 << 10
	b.stream = slices.Grow(b.stream, part)
	n, err := body.Read(b.stream[len(b.stream) : len(b.stream)+part])
	b.stream = b.stream[:len(b.stream)+n]
	return err
}

// scan looks at the lines that have come, and reports whether the first event is complete.
func (b *beginning) scan() (complete bool) {
	for {
		end, next := b.endOfLine()
		if next == 0 {
			return false
		}
		line := b.unmarked(b.line, end)
		if len(line) == 0 && b.hasField {
			b.end = b.line
			return true
		}
		b.line = next
		b.looked = next
		if len(line) == 0 {
			b.block = next
		} else if line[0] != ':' {
			b.hasField = true
		}
	}
}

// endOfLine returns the offsets at which the line under way ends and the next one begins. next is 0 if the line may go
// on. That includes a CR at the end of the bytes so far, since a LF may follow it.
func (b *beginning) endOfLine() (end, next int) {
	i := bytes.IndexAny(b.stream[b.looked:], "\r\n")
	if i < 0 {
		b.looked = len(b.stream)
		return 0, 0
	}
	b.looked += i
	end = b.looked
	if b.stream[end] == '\n' {
		return end, end + 1
	}
	if end+1 == len(b.stream) {
		return 0, 0
	}
	if b.stream[end+1] == '\n' {
		return end, end + 2
	}
	return end, end + 1
}

// unmarked returns the bytes of the stream from start to end, without the byte order mark that a stream may begin with.
func (b *beginning) unmarked(start, end int) []byte {
	if start > 0 {
		return b.stream[start:end]
	}
	return bytes.TrimPrefix(b.stream[:end], []byte("\ufeff"))
}

// event returns the lines of the first event, as far as they have come.
func (b *beginning) event() []byte {
	if b.end == 0 {
		return b.unmarked(b.block, len(b.stream))
	}
	return bytes.TrimRight(b.unmarked(b.block, b.end), "\r\n")
}
