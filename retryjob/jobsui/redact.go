package jobsui

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// hidden stands for a secret.
const hidden = "(hidden)"

// telling are parts of the names of secrets, in lower case.
var telling = []string{"passw", "secret", "token", "api_key", "api-key", "apikey", "access_key", "access-key", "accesskey",
	"private_key", "private-key", "privatekey", "credential", "authorization", "cookie", "signature"}

// tells reports whether a text has a part of the name of a secret.
func tells(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(telling, func(part string) bool { return strings.Contains(text, part) })
}

var (
	urlPassword  = regexp.MustCompile(`(://[^:@/\s"]*):[^@/\s"]*@`)
	urlParameter = regexp.MustCompile(`(?i)([?&][^=&\s"]*(?:` + strings.Join(telling, "|") + `)[^=&\s"]*=)[^&#\s"]*`)
)

// RedactSecrets returns the payload with "(hidden)" in place of the members whose names look like those of secrets, such
// as "password", "api_key", "accessToken" and "Authorization", and of passwords and such parameters in URLs, also in
// JSON within a text. It is the default because payloads end up on shared screens and in screenshots, and a user who
// needs the value can read it in the database. It recognizes names alone: if payloads have other secrets, set
// Options.Redact. If the payload is cut, the text that the cut is in is hidden if it could have a secret.
func RedactSecrets(payload json.RawMessage) json.RawMessage {
	var out []byte
	copied := 0 // the bytes of payload that are in out
	replace := func(from, to int, by []byte) {
		out = append(append(out, payload[copied:from]...), by...)
		copied = to
	}
	for d := json.NewDecoder(bytes.NewReader(payload)); ; {
		before := int(d.InputOffset())
		token, err := d.Token()
		end := int(d.InputOffset())
		if err != nil {
			if tail := payload[before:]; bytes.Contains(tail, []byte("://")) || tells(string(tail)) {
				replace(before, len(payload), []byte(hidden))
			}
			break
		}
		text, ok := token.(string)
		if !ok {
			continue
		}
		after := bytes.TrimLeft(payload[end:], " \t\r\n")
		if value, ofName := bytes.CutPrefix(after, []byte(":")); !ofName {
			if shown := redactText(text); shown != text {
				quoted, _ := json.Marshal(shown) // a string
				replace(before+bytes.IndexByte(payload[before:], '"'), end, quoted)
			}
		} else if tells(text) {
			from := len(payload) - len(bytes.TrimLeft(value, " \t\r\n"))
			to := len(payload)
			if err := d.Decode(&json.RawMessage{}); err == nil {
				to = int(d.InputOffset())
			}
			replace(from, to, []byte(`"`+hidden+`"`))
			if to == len(payload) {
				break
			}
		}
	}
	if out == nil {
		return payload
	}
	return append(out, payload[copied:]...)
}

// redactText returns a text of a payload without secrets.
func redactText(text string) string {
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		return string(RedactSecrets([]byte(text)))
	}
	if !strings.Contains(text, "://") && !strings.Contains(text, "?") {
		return text
	}
	return urlParameter.ReplaceAllString(urlPassword.ReplaceAllString(text, "${1}:"+hidden+"@"), "${1}"+hidden)
}
