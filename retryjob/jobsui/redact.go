package jobsui

import (
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// hidden stands for a secret.
const hidden = "(hidden)"

// The names of secrets are those of Sentry's deny list (sentry-python, scrubber.py) and of Rails' filter_parameters, but
// for those of personal data, such as email and IP addresses, by which people look for a job.
var (
	// secretWords are words of which one makes a name that of a secret.
	secretWords = set("pass", "pwd", "pw", "passwd", "password", "passphrase", "passcode", "secret", "secrets", "token", "tokens", "auth",
		"authorization", "bearer", "jwt", "session", "sessionid", "sid", "csrf", "xsrf", "cookie", "cookies", "credential", "credentials", "creds",
		"signature", "sig", "pin", "otp", "totp", "cvv", "cvv2", "cvc", "cvc2", "ssn", "salt", "crypt", "certificate", "dsn")
	// keyWords are words that make one with "key" after them that of a secret.
	keyWords = set("api", "access", "private", "secret", "signing", "encryption", "master", "account", "auth", "shared", "ssh", "pgp")
	// secretParts make a name that of a secret wherever they stand, as names are written without limits between words too.
	secretParts = []string{"passw", "secret", "token", "credential", "authoriz", "apikey", "accesskey", "privatekey", "signature", "sessionid"}
)

func set(words ...string) map[string]bool {
	all := make(map[string]bool, len(words))
	for _, word := range words {
		all[word] = true
	}
	return all
}

// isSecret reports whether a name looks like that of a secret: "db_password", "accessToken", "X-Api-Key", "PIN".
func isSecret(name string) bool {
	const longest = 256
	name = name[max(len(name)-longest, 0):]
	lower := strings.ToLower(name)
	if slices.ContainsFunc(secretParts, func(part string) bool { return strings.Contains(lower, part) }) {
		return true
	}
	words := wordsOf(name)
	for i, word := range words {
		if secretWords[word] {
			return true
		}
		if word == "key" && i > 0 && keyWords[words[i-1]] {
			return true
		}
	}
	return false
}

// wordsOf returns the words of a name in lower case: "privateKey" and "private.key" have the same.
func wordsOf(name string) []string {
	var b strings.Builder
	var before rune
	for _, r := range name {
		if unicode.IsUpper(r) && unicode.IsLower(before) {
			b.WriteByte(' ')
		}
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			r = ' '
		}
		b.WriteRune(unicode.ToLower(r))
		before = r
	}
	return strings.Fields(b.String())
}

// cut is a part of a payload and its replacement.
type cut struct {
	from, to int
	by       string
}

// RedactSecrets returns the payload with "(hidden)" in place of the members whose names look like those of secrets, such
// as "password", "api_key", "accessToken" and "pin", also if the name is the value of a member called name, as in
// {"name": "Authorization", "value": "..."}. In its texts it hides the same as RedactText, also in JSON within a text. It is
// the default because payloads end up on shared screens and in screenshots, and a user who needs the value can read it in
// the database. It recognizes names and forms alone: if payloads have other secrets, set Options.Redact. If the payload
// is cut, the text that the cut is in is hidden if it could have a secret.
func RedactSecrets(payload json.RawMessage) json.RawMessage {
	cuts := redactions(payload)
	if len(cuts) == 0 {
		return payload
	}
	slices.SortFunc(cuts, func(a, b cut) int { return cmp.Compare(a.from, b.from) })
	var out []byte
	copied := 0
	for _, c := range cuts {
		if c.from >= copied {
			out = append(append(out, payload[copied:c.from]...), c.by...)
			copied = c.to
		}
	}
	return append(out, payload[copied:]...)
}

// redactions returns the parts of a payload to replace.
func redactions(payload []byte) []cut {
	s := scan{payload: payload, tokens: json.NewDecoder(bytes.NewReader(payload)), open: []*container{{}}}
	for s.next() {
	}
	return s.cuts
}

// scan looks for secrets in a payload, token by token.
type scan struct {
	payload []byte
	tokens  *json.Decoder
	open    []*container // the outermost one first; there is always one
	cuts    []cut
}

// container is an object or array that is open.
type container struct {
	key    string // of the member that comes next; empty in an array
	secret bool   // it has a member called name whose value is the name of a secret
	values []cut  // its members called value
}

// next looks at the next token. It reports false after the last one, and where the payload is cut or is not JSON.
func (s *scan) next() bool {
	from := int(s.tokens.InputOffset())
	token, err := s.tokens.Token()
	if err != nil {
		s.rest(from)
		return false
	}
	switch token := token.(type) {
	case json.Delim:
		s.delim(token)
	case string:
		if value, isKey := s.afterColon(); isKey {
			return s.member(token, value)
		}
		s.text(token, from)
	}
	return true
}

// rest hides the part of a payload that cannot be read, from an offset, if it may have a secret.
func (s *scan) rest(from int) {
	rest := s.payload[from:]
	if len(bytes.TrimSpace(rest)) > 0 && mayHaveSecret(string(rest)) {
		s.cuts = append(s.cuts, cut{from, len(s.payload), hidden})
	}
}

// delim opens or closes a container.
func (s *scan) delim(token json.Delim) {
	if token == '{' || token == '[' {
		s.open = append(s.open, &container{})
		return
	}
	last := len(s.open) - 1
	if in := s.open[last]; in.secret {
		s.cuts = append(s.cuts, in.values...)
	}
	s.open = s.open[:last]
}

// afterColon returns the offset of the value of a member, if the last token was its key.
func (s *scan) afterColon() (value int, isKey bool) {
	const blank = " \t\r\n"
	rest := bytes.TrimLeft(s.payload[s.tokens.InputOffset():], blank)
	after, isKey := bytes.CutPrefix(rest, []byte(":"))
	return len(s.payload) - len(bytes.TrimLeft(after, blank)), isKey
}

// member looks at a key. It skips the value, which begins at an offset, if that is hidden as a whole. It reports false if
// the value is cut.
func (s *scan) member(key string, value int) bool {
	in := s.open[len(s.open)-1]
	in.key = strings.ToLower(key)
	whole := cut{value, valueEnd(s.payload, value), `"` + hidden + `"`}
	if strings.HasPrefix(in.key, "value") {
		in.values = append(in.values, whole)
	}
	if !isSecret(key) || isPlain(s.payload[value:whole.to]) {
		return true
	}
	s.cuts = append(s.cuts, whole)
	return s.tokens.Decode(&json.RawMessage{}) == nil
}

// text looks at a text that is not a key. Its token begins at an offset or after it.
func (s *scan) text(text string, from int) {
	in := s.open[len(s.open)-1]
	if slices.Contains([]string{"name", "key", "header", "field"}, in.key) && isSecret(text) {
		in.secret = true
	}
	if shown := RedactText(text); shown != text {
		quoted, _ := json.Marshal(shown) // a string
		from += bytes.IndexByte(s.payload[from:], '"')
		s.cuts = append(s.cuts, cut{from, int(s.tokens.InputOffset()), string(quoted)})
	}
}

// valueEnd returns the end of the JSON value that begins at from, or the end of the payload if it is cut.
func valueEnd(payload []byte, from int) int {
	d := json.NewDecoder(bytes.NewReader(payload[from:]))
	if d.Decode(&json.RawMessage{}) != nil {
		return len(payload)
	}
	return from + int(d.InputOffset())
}

// isPlain reports whether a JSON value is true, false or null, which cannot be a secret.
func isPlain(value []byte) bool {
	text := string(bytes.TrimSpace(value))
	return text == "true" || text == "false" || text == "null"
}

// mayHaveSecret reports whether a part of a text that is cut could be, or have, a secret.
func mayHaveSecret(text string) bool {
	return strings.Contains(text, "://") || strings.Contains(text, "-----BEGIN") || RedactText(text) != text ||
		namesSecret(text)
}

// namesSecret reports whether a word of a text looks like the name of a secret.
func namesSecret(text string) bool {
	for at := names.FindStringIndex(text); at != nil; at = names.FindStringIndex(text) {
		if isSecret(text[at[0]:at[1]]) {
			return true
		}
		text = text[at[1]:]
	}
	return false
}

var names = regexp.MustCompile(`[\w.-]+`)

// rule is a form of secrets in texts.
type rule struct {
	marks   []string // of which a text with such a secret has one: looking for them is cheap
	pattern *regexp.Regexp
	by      func(parts []string) string // returns the replacement of a match
}

var rules = []rule{
	{ // a private key
		[]string{"PRIVATE KEY"}, regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*-----)?`),
		func([]string) string { return hidden },
	},
	{ // the password of a URL
		[]string{"://"}, regexp.MustCompile(`(://[^:@/\s"]*):[^@/\s"]*@`),
		func(parts []string) string { return parts[1] + ":" + hidden + "@" },
	},
	{ // the password of a data source, as Go's driver of MySQL writes it
		[]string{"@"}, regexp.MustCompile(`([\w.-]+):[^\s@"']*@(\w*\()`),
		func(parts []string) string { return parts[1] + ":" + hidden + "@" + parts[2] },
	},
	{ // a header
		[]string{"uthorization", "UTHORIZATION", "ookie", "OOKIE", "X-", "x-"},
		regexp.MustCompile(`(?i)\b((?:proxy-)?authorization|(?:set-)?cookie|x-[\w-]+)(["']?\s*[:=]\s*["']?)([^"'\r\n]+)`),
		func(parts []string) string { return ifSecret(parts[1], parts[0], parts[1]+parts[2]) },
	},
	{ // a token after its scheme, but not a word
		[]string{"earer ", "EARER ", "asic ", "BASIC ", "igest ", "oken "}, regexp.MustCompile(`(?i)\b((?:bearer|basic|digest|token)\s+)([\w.~+/=-]{6,})`),
		func(parts []string) string {
			if !strings.ContainsAny(parts[2], "0123456789.=+/_") && parts[2] == strings.ToLower(parts[2]) {
				return parts[0]
			}
			return parts[1] + hidden
		},
	},
	{ // a member of JSON in a text
		[]string{`"`}, regexp.MustCompile(`("([\w.-]+)\\?"\s*:\s*\\?")([^"\\]*)`),
		func(parts []string) string { return ifSecret(parts[2], parts[0], parts[1]) },
	},
	{ // a parameter
		[]string{"="}, regexp.MustCompile(`([\w.\[\]-]+)(=)("[^"]*"|'[^']*'|[^\s&;,"'()<>#]+)`),
		func(parts []string) string { return ifSecret(parts[1], parts[0], parts[1]+parts[2]) },
	},
	{ // a secret that is known by its form: JSON web tokens, and keys of Stripe, GitHub, Slack and AWS
		[]string{"eyJ", "k_live_", "k_test_", "gho_", "ghp_", "ghr_", "ghs_", "ghu_", "github_pat_", "xox", "AKIA", "ASIA"},
		regexp.MustCompile(`\beyJ[\w-]{6,}\.[\w-]+\.?[\w-]*|\b[spr]k_(?:live|test)_\w+|\bgh[oprsu]_\w{20,}|\bgithub_pat_\w+|\bxox[abposr]-[\w-]+|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`),
		func([]string) string { return hidden },
	},
}

// ifSecret returns whole unless the name is that of a secret. Then it returns the text before the secret and "(hidden)".
func ifSecret(name, whole, before string) string {
	if !isSecret(name) {
		return whole
	}
	return before + hidden
}

// RedactText returns a text, such as that of an error, with "(hidden)" in place of text that looks like a secret, such as passwords of
// URLs and data sources, parameters and headers with the name of one, bearer tokens and private keys.
func RedactText(text string) string {
	trimmed := strings.TrimSpace(text)
	if (strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[")) && json.Valid([]byte(trimmed)) {
		return string(RedactSecrets([]byte(text)))
	}
	for _, r := range rules {
		has := func(mark string) bool { return strings.Contains(text, mark) }
		if !slices.ContainsFunc(r.marks, has) || !r.pattern.MatchString(text) {
			continue
		}
		text = r.pattern.ReplaceAllStringFunc(text, func(match string) string { return r.by(r.pattern.FindStringSubmatch(match)) })
	}
	return text
}
