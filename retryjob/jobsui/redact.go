package jobsui

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// hidden stands for a secret.
const hidden = "(hidden)"

// telling are parts of the names of secrets.
var telling = []string{"passw", "secret", "token", "api_key", "api-key", "apikey", "access_key", "access-key", "accesskey", "private_key", "private-key",
	"privatekey", "credential", "authorization", "cookie", "signature"}

// secret matches a member of a JSON object whose name looks like that of a secret, with its value: a text, a number, a
// word, or a flat list or object, which may be cut.
var (
	secret = regexp.MustCompile(`(?i)("[^"]*(?:` + strings.Join(telling, "|") + `)[^"]*"\s*:\s*)` +
		`("(?:[^"\\]|\\.)*(?:"|\\?$)|[^\s",{}\[\]]+|\[[^\[\]]*(?:\]|$)|\{[^{}]*(?:\}|$))`)
	urlPassword = regexp.MustCompile(`(://[^:@/\s"]*):[^@/\s"]*@`)
)

// RedactSecrets returns the payload with "(hidden)" in place of the members whose names look like those of secrets, such
// as "password", "api_key", "accessToken" and "Authorization", and of passwords in URLs. It is the default because
// payloads end up on shared screens and in screenshots, and who needs the value can read it in the database. It
// finds what has a telling name, and nothing else: if payloads have other secrets, set Options.Redact.
func RedactSecrets(payload json.RawMessage) json.RawMessage {
	lower := strings.ToLower(string(payload))
	if slices.ContainsFunc(telling, func(part string) bool { return strings.Contains(lower, part) }) { // the expression is slow
		payload = secret.ReplaceAll(payload, []byte(`${1}"`+hidden+`"`))
	}
	if strings.Contains(lower, "://") {
		payload = urlPassword.ReplaceAll(payload, []byte("${1}:"+hidden+"@"))
	}
	return payload
}
