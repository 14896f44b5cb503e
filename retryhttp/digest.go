package retryhttp

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash"
	"net/http"
	"strings"
)

// digest is the SHA-256 of a body, to be compared with the one in its first response's header (RFC 9530).
type digest struct {
	hash  hash.Hash
	want  string // the sum, in base64
	field string // that has the sum
	parts []int64
}

const namedParts = 8 // of a body, in an error

// digestOf returns the digest to compare the body of resp with, or nil if resp has no valid one. Content-Digest covers
// the bytes of the response, Repr-Digest the whole on the server.
func digestOf(resp *http.Response) *digest {
	if resp.Uncompressed {
		return nil // both are of the encoded bytes
	}
	d := &digest{hash: sha256.New(), field: "Content-Digest", want: sha256In(resp.Header.Values("Content-Digest"))}
	if d.want == "" && resp.StatusCode == http.StatusOK {
		d.field = "Repr-Digest"
		d.want = sha256In(resp.Header.Values("Repr-Digest"))
	}
	if d.want == "" {
		return nil
	}
	return d
}

// sha256In returns the value of sha-256 in a dictionary such as "sha-512=:...:, sha-256=:...:", in base64, "" if there is
// no valid one.
func sha256In(values []string) string {
	found := ""
	for member := range strings.SplitSeq(strings.Join(values, ","), ",") {
		name, value, _ := strings.Cut(strings.Trim(member, " \t"), "=")
		if name != "sha-256" {
			continue
		}
		value, _, _ = strings.Cut(value, ";") // parameters
		found = strings.TrimRight(value, " \t")
	}
	sum, ok := strings.CutPrefix(found, ":")
	if !ok {
		return ""
	}
	sum, ok = strings.CutSuffix(sum, ":")
	if decoded, err := base64.StdEncoding.DecodeString(sum); !ok || err != nil || len(decoded) != sha256.Size {
		return ""
	}
	return sum
}

// add adds the next bytes of the body. The methods of a nil digest have no effect.
func (d *digest) add(p []byte) {
	if d != nil {
		d.hash.Write(p)
	}
}

// begin notes that a part begins at the offset.
func (d *digest) begin(offset int64) {
	if d != nil && len(d.parts) <= namedParts {
		d.parts = append(d.parts, offset)
	}
}

// mismatch returns an error if the body, which has ended, has another digest.
func (d *digest) mismatch() error {
	if d == nil {
		return nil
	}
	got := base64.StdEncoding.EncodeToString(d.hash.Sum(nil))
	if got == d.want {
		return nil
	}
	var places []string
	for _, offset := range d.parts {
		places = append(places, fmt.Sprint(offset))
	}
	if len(places) > namedParts {
		places[namedParts] = "..."
	}
	return fmt.Errorf("the body has the SHA-256 %s, not %s as by %s; its parts began at byte %s", got, d.want, d.field,
		strings.Join(places, ", "))
}
