package retryhttp

import (
	"bytes"
	"io"
	"mime"
	"net/http"
)

// longestEvent is how much of a stream FirstEvent reads: more than the first events of model services have, which are
// below 2 KiB.
const longestEvent = 64 << 10

// FirstEvent returns an Accept for services that answer with a stream of server-sent events, and that may say only there
// that they have failed. Of a 2xx with the Content-Type text/event-stream it reads the first event, which the caller reads
// again, and asks ok whether that begins a success; nil means that any event does. So a stream that begins with an error is
// repeated, and one that has begun well never is. It is for a request that has a key or is allowed by Repeat, since the
// service may have done work. Any other response it judges by its status.
//
// ok gets the lines of the event as they came, without the empty line that ends it. Blocks of comments alone, such as
// pings, are passed over. If the stream ends, or 64 KiB have come, before an event is complete, ok gets what there is. If the
// stream breaks off before that, the response is not accepted. AttemptTimeout covers the wait for the event, and
// StallTimeout each Read.
func FirstEvent(ok func(event []byte) bool) func(*http.Response) bool {
	return func(resp *http.Response) bool {
		if !succeeded(resp.StatusCode) || !isEventStream(resp) {
			return succeeded(resp.StatusCode)
		}
		event, err := peekEvent(resp)
		if err != nil {
			return false
		}
		return ok == nil || ok(event)
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

// peekEvent returns the first event of the body of resp, and puts back what it has read. An error is that of the body.
func peekEvent(resp *http.Response) ([]byte, error) {
	body := resp.Body
	var begun []byte
	var err error
	event, complete := []byte(nil), false
	for !complete && err == nil && len(begun) < longestEvent {
		n := 0
		begun = append(begun, make([]byte, 2<<10)...)
		room := begun[len(begun)-2<<10:]
		n, err = body.Read(room)
		begun = begun[:len(begun)-len(room)+n]
		event, complete = firstEvent(begun)
	}
	rest := io.Reader(body)
	if err != nil {
		rest = failing{err}
	}
	resp.Body = &peeked{io.MultiReader(bytes.NewReader(begun), rest), body}
	if err == io.EOF || complete {
		err = nil
	}
	return event, err
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// firstEvent returns the first event in the beginning of a stream, and whether it is complete. The lines of a stream end
// with LF, CR LF or CR (HTML, section 9.2.5).
func firstEvent(stream []byte) (event []byte, complete bool) {
	stream = bytes.TrimPrefix(stream, []byte("\ufeff"))
	rest := stream
	start := 0 // of the block
	hasField := false
	for {
		line, after, ok := cutLine(rest)
		if !ok {
			return stream[start:], false
		}
		end := len(stream) - len(rest)
		rest = after
		switch {
		case len(line) > 0:
			hasField = hasField || line[0] != ':'
		case hasField:
			return bytes.TrimRight(stream[start:end], "\r\n"), true
		default:
			start = len(stream) - len(rest)
		}
	}
}

// cutLine cuts the first line off, with what ends it. It reports false if the line may go on: a CR at the end of what has
// come may be followed by LF.
func cutLine(b []byte) (line, rest []byte, ok bool) {
	i := bytes.IndexAny(b, "\r\n")
	switch {
	case i < 0 || b[i] == '\r' && i+1 == len(b):
		return nil, b, false
	case b[i] == '\r' && b[i+1] == '\n':
		return b[:i], b[i+2:], true
	default:
		return b[:i], b[i+1:], true
	}
}
