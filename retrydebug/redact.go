package retrydebug

import (
	"regexp"
	"slices"
	"strings"
)

const hidden = "(hidden)"

var (
	// The names of secrets. A name that has one of telling in it is one, and so is a name whose first part is one of words.
	telling = []string{"passw", "passphrase", "secret", "token", "api-key", "api_key", "api.key", "apikey", "access-key", "access_key",
		"access.key", "accesskey", "private-key", "private_key", "private.key", "privatekey", "credential", "signature", "session", "jwt",
		"bearer", "cvv"}
	words = []string{"pass", "pwd", "pw", "creds", "pin", "otp", "totp", "sig", "sid", "auth", "csrf", "xsrf", "cvc", "ssn", "dsn"}

	// redactions are made in this order, each only on a text that has one of its parts, because an expression takes
	// microseconds.
	redactions = []struct {
		parts []string
		find  *regexp.Regexp
		by    string
	}{
		{[]string{"private key"}, regexp.MustCompile(`(?is)-----BEGIN [A-Z ]*PRIVATE KEY.*`), hidden},
		// The rest of the line, since there can be several values, with blanks.
		{[]string{"authorization", "cookie"}, regexp.MustCompile(`(?i)((?:authorization|cookie)[\w-]*\\*["']?\s*[:=,]).*`), "${1} " + hidden},
		// User and password of a URL, and of MySQL's root:secret@tcp(db)/shop.
		{[]string{"@"}, regexp.MustCompile(`(://)[^/?#\s"']*@`), "${1}" + hidden + "@"},
		{[]string{"@"}, regexp.MustCompile(`([^\s"'=(:@/]+:)[^\s"'@/][^\s"'@]*@`), "${1}" + hidden + "@"},
		// The query or fragment of a URL.
		{[]string{"="}, regexp.MustCompile(`([?#])[^\s"'?#]*=[^\s"']*`), "${1}" + hidden},
		{[]string{"bearer"}, regexp.MustCompile(`(?i)\b(bearer\s+)[\w.~+/=-]+`), "${1}" + hidden},
		// A name, or several as in "auth: token: x", and a value. One that is a list, an object or escaped ends with the line.
		{slices.Concat(telling, words), regexp.MustCompile(`(?i)((?:\\*["']?(?:[\w.-]*(?:` + strings.Join(telling, "|") + `)[\w.-]*|\b(?:` +
			strings.Join(words, "|") + `)(?:[_.-][\w.-]*)?)\\*["']?\s*[:=]\s*)+)` +
			`(?:\\+["'].*|(?:"(?:[^"\\]|\\.)*"?|'[^']*'?)[^\s,;&)}\]]*|[\[{].*|\S+)`), "${1}" + hidden},
		// Tokens of a known form. They are JSON Web Tokens, and tokens of AWS, GitHub, Google, Slack and Stripe.
		{[]string{"eyj", "akia", "asia", "gh", "aiza", "xox", "k_"}, regexp.MustCompile(`\beyJ[\w-]+\.[\w-]+(?:\.[\w-]*)*|\b(?:AKIA|ASIA)[0-9A-Z]{16}|` +
			`\bgh[opsur]_\w+|\bgithub_pat_\w+|\bAIza[\w-]{35}|\bxox[a-z]-[\w-]+|\b[prs]k_(?:live|test)_\w+`), hidden},
	}
)

// RedactSecrets returns the text of an error with "(hidden)" in place of parts that look like a secret. It hides
//
//   - user, password, query and fragment of a URL,
//   - the value of a name such as "password", "api_key" or "token" in a form, in JSON or beside an equals sign or a colon,
//   - the rest of a line after "Authorization" or "Cookie",
//   - bearer tokens, tokens of well-known forms, and private keys.
//
// It hides too much rather than too little. Of "unexpected token: EOF", for example, it hides "EOF". It does not
// recognize other secrets, such as a password in a sentence.
func RedactSecrets(text string) string {
	lower := strings.ToLower(text)
	for _, r := range redactions {
		if slices.ContainsFunc(r.parts, func(part string) bool { return strings.Contains(lower, part) }) {
			text = r.find.ReplaceAllString(text, r.by)
		}
	}
	return text
}
