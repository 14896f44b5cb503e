package retrydebug_test

import (
	"encoding/json"
	"errors"
	"html"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrydebug"
)

func TestRedactSecrets(t *testing.T) {
	for _, row := range []struct{ name, text, want string }{
		{"a refused connection", "dial tcp 10.0.0.7:5432: connect: connection refused", "dial tcp 10.0.0.7:5432: connect: connection refused"},
		{"a name that does not resolve", "dial tcp: lookup db.internal on 10.0.0.2:53: no such host", "dial tcp: lookup db.internal on 10.0.0.2:53: no such host"},
		{"an error of PostgreSQL", "ERROR: duplicate key value violates unique constraint \"orders_pkey\" (SQLSTATE 23505)", "ERROR: duplicate key value violates unique constraint \"orders_pkey\" (SQLSTATE 23505)"},
		{"a status of gRPC", "rpc error: code = Unavailable desc = connection error", "rpc error: code = Unavailable desc = connection error"},
		{"a URL", `Get "https://h.internal:8443/v1/items/8": EOF`, `Get "https://h.internal:8443/v1/items/8": EOF`},
		{"a token in a sentence", "invalid character '<' looking for a token", "invalid character '<' looking for a token"},
		{"an address", "550 no such user: bob@example.com", "550 no such user: bob@example.com"},

		{"the password of a URL", `dial postgres://app:hush@db:5432/shop`, `dial postgres://(hidden)@db:5432/shop`},
		{"with an at sign", `postgres://app:hu@sh@db/shop`, `postgres://(hidden)@db/shop`},
		{"the query of a URL", `Get "https://h/v1?a=hush&b=c": EOF`, `Get "https://h/v1?(hidden)": EOF`},
		{"its fragment", `https://h/#access_token=hush`, `https://h/#(hidden)`},
		{"MySQL's address", `root:hush@tcp(db:3306)/shop: refused`, `root:(hidden)@tcp(db:3306)/shop: refused`},
		{"with a slash", `root:hu/sh@tcp(db:3306)/shop: refused`, `root:(hidden)@tcp(db:3306)/shop: refused`},
		{"libpq's", `host=db user=app password=hush port=5432`, `host=db user=app password=(hidden) port=5432`},
		{"in quotes", `password='hu sh' port=1`, `password=(hidden) port=1`},
		{"in double quotes", `password = "hu\"sh" port=1`, `password = (hidden) port=1`},
		{"JSON", `422: {"user":"u","apiKey":"hush","n":1}`, `422: {"user":"u","apiKey":(hidden),"n":1}`},
		{"JSON in JSON", `{"body":"{\"password\":\"hush\",\"n\":1}"}`, `{"body":"{\"password\":(hidden)`},
		{"a list", `{"tokens":["hush","hush"]}`, `{"tokens":(hidden)`},
		{"an object", `{"credentials":{"id":"hush"}}`, `{"credentials":(hidden)`},
		{"a header", "Authorization: Bearer hush\nAccept: */*", "Authorization: (hidden)\nAccept: */*"},
		{"a header with several values", "Cookie: a=hush; session=hush", "Cookie: (hidden)"},
		{"http.Header", "map[Authorization:[Bearer hush] Set-Cookie:[a=hush; b]]", "map[Authorization: (hidden)"},
		{"a name and a value", `{"name":"Authorization","value":"hush"}`, `{"name":"Authorization", (hidden)`},
		{"a bearer token", "rejected bearer hush.hush-hush==", "rejected bearer (hidden)"},
		{"short names", "pwd=hush pin: hush sig=hush auth=hush pass=hush", "pwd=(hidden) pin: (hidden) sig=(hidden) auth=(hidden) pass=(hidden)"},
		{"a chain of errors", "login: auth: token: hush: EOF", "login: auth: token: (hidden) EOF"},
		{"parts of words", "bypass=yes spin: 3 author=bob", "bypass=yes spin: 3 author=bob"},
		{"names of two words", "db_password=hush x-api-key: hush private.key=hush sessionId=hush auth_header=hush", "db_password=(hidden) x-api-key: (hidden) private.key=(hidden) sessionId=(hidden) auth_header=(hidden)"},
		{"a JSON Web Token", "bad eyJhbGciOi.eyJzdWIi.hush", "bad (hidden)"},
		{"keys of known forms", "AKIAIOSFODNN7EXAMPLE ghp_hush sk_live_hush xoxb-1-hush", "(hidden) (hidden) (hidden) (hidden)"},
		{"a private key", "bad -----BEGIN RSA PRIVATE KEY-----\nhush\n-----END", "bad (hidden)"},
		{"too much rather than too little", "unexpected token: EOF", "unexpected token: (hidden)"},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, retrydebug.RedactSecrets(row.text))
			live := retrydebug.New(retrydebug.Options{})
			_ = retry.Do(t.Context(), live.Watch(retry.Policy{}), takes(0, retry.Permanent(errors.New(row.text))))
			for _, accept := range []string{"text/html", "text/plain", "application/json"} {
				require.NotContains(t, get(live, "", accept).Body.String(), "hush")
			}
		})
	}
}

func TestAnOwnRedaction(t *testing.T) {
	live := retrydebug.New(retrydebug.Options{Redact: func(text string) string { return strings.ReplaceAll(text, "tenant-7", "a tenant") }})
	_ = retry.Do(t.Context(), live.Watch(retry.Policy{}), takes(0, retry.Permanent(errors.New("quota of tenant-7, password=x"))))
	require.Equal(t, "quota of a tenant, password=x", live.Snapshot().Failed[0].History[0].Error)
}

// FuzzRedactSecrets puts a secret where secrets stand, behind any text, and looks for it.
func FuzzRedactSecrets(f *testing.F) {
	for _, seed := range []string{"", "Get \"https://a/b?c=d\": EOF", "{\"a\":\"", "token", "x:y@", "Authorization", "'", "\\\"", "password=", "eyJ", "-----BEGIN PRIVATE KEY"} {
		f.Add(seed, seed)
	}
	forms := []string{
		"postgres://app:hush@db/shop", "https://h/?token=hush", "https://h/#token=hush&a=b", "root:hush@tcp(db)/shop", " password=hush", ` "api_key":"hush"`,
		` "api_key" : "hush"`, " Authorization: Basic hush", " Set-Cookie:[a=hush]", " bearer hush", ` {\"secret\":\"hush\"}`, " eyJh.hush.hush", " ghp_hush",
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		if strings.Contains(before+after, "hush") {
			return
		}
		for _, form := range forms {
			text := before + " " + form + " " + after
			require.NotContains(t, retrydebug.RedactSecrets(text), "hush", "%q", text)
		}
		if utf8.ValidString(before) {
			require.True(t, utf8.ValidString(retrydebug.RedactSecrets(before)))
		}
	})
}

// FuzzThePage: whatever a name, an error or a label says, it cannot be markup in HTML, nor a control character or a line
// on a terminal, and JSON has it as it is shown.
func FuzzThePage(f *testing.F) {
	for _, seed := range []string{"<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "</style><b>", "\x1b[2J", "\u202e", "a\tb\nc", "\xff", "{{.Name}}", "' onload='", "&lt;b&gt;"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = "x" + text
		live := retrydebug.New(retrydebug.Options{Name: text, Redact: func(text string) string { return text }})
		policy := live.Watch(retry.Policy{Name: text})
		_ = retry.Do(t.Context(), policy, takes(0, retry.Permanent(errors.New(text))))
		live.Budget(text, retry.NewBudget(retry.BudgetConfig{}))
		body := get(live, "", "text/html").Body.String()
		plain := retrydebug.New(retrydebug.Options{Name: "x"})
		_ = retry.Do(t.Context(), plain.Watch(retry.Policy{Name: "x"}), takes(0, retry.Permanent(errors.New("x"))))
		plain.Budget("x", retry.NewBudget(retry.BudgetConfig{}))
		require.Equal(t, tags(get(plain, "", "text/html").Body.String()), tags(body), "the text has made or changed a tag")

		table := get(live, "", "text/plain").Body.String()
		require.True(t, utf8.ValidString(table))
		require.Equal(t, -1, strings.IndexFunc(table, func(r rune) bool { return r != '\n' && unicode.In(r, unicode.Cc, unicode.Cf) }))
		require.Equal(t, strings.Count(get(plain, "", "text/plain").Body.String(), "\n"), strings.Count(table, "\n"))

		var s retrydebug.Snapshot
		require.NoError(t, json.Unmarshal(get(live, "", "application/json").Body.Bytes(), &s))
		require.Equal(t, live.Snapshot().Failed[0].History[0].Error, s.Failed[0].History[0].Error)
		require.Contains(t, html.UnescapeString(body), s.Failed[0].History[0].Error)
	})
}

// tags returns the tags of a page, with their attributes but for what is drawn.
func tags(page string) (list []string) {
	_, page, _ = strings.Cut(page, "</title>")
	for {
		var tag string
		var found bool
		if _, page, found = strings.Cut(page, "<"); !found {
			return list
		}
		if tag, page, found = strings.Cut(page, ">"); !found {
			return append(list, "not closed: "+tag)
		}
		if !strings.HasPrefix(tag, "rect") {
			list = append(list, tag)
		}
	}
}
