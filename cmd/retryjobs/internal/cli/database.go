package cli

import (
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// databaseVariable is the environment variable used if --database is not given.
const databaseVariable = "RETRYJOBS_DATABASE"

var errNoDatabase = errors.New("no database is given: set --database or " + databaseVariable + " to a SQLite file or a postgres:// URL")

// choose returns the database that --database or the environment names, after finding its secret parts.
func (a *app) choose(set bool) (string, error) {
	database := a.database
	if !set {
		database = a.Getenv(databaseVariable)
	}
	if database == "" {
		return "", errNoDatabase
	}
	secrets, err := secretsOf(database)
	a.chosen, a.secrets = database, secrets
	return database, err
}

var (
	errNotDatabase = errors.New("the database must be a SQLite file (sqlite:PATH for an odd name) or a postgres:// URL")
	errAmbiguous   = errors.New("the postgres:// URL is malformed or ambiguous (in a password, all but letters and digits must be written as %XX)")
)

// secretsOf returns the parts of a database's name that must never be printed. If it cannot find them, it refuses the
// name with an error that does not show it. The driver's own error would show it whole.
func secretsOf(database string) ([]string, error) {
	scheme, _, isURL := strings.Cut(database, "://")
	switch {
	case scheme == "sqlite" || !isURL && strings.HasPrefix(database, "sqlite:"):
		return nil, nil
	case !isURL && !passwordKey.MatchString(database) && !nearlyURL.MatchString(database):
		return nil, nil
	case scheme != "postgres" && scheme != "postgresql":
		return nil, errNotDatabase
	}
	u, err := url.Parse(database)
	if err != nil {
		return nil, errAmbiguous
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil || u.User == nil && (strings.Contains(u.Path+u.Fragment, "@") || keyWithAt.MatchString(u.RawQuery)) {
		return nil, errAmbiguous // a /, ? or # in the password ended the host early
	}
	secrets := append(query["password"], query["sslpassword"]...) // as they were parsed; redact finds them as they were written
	if password, ok := u.User.Password(); ok {
		secrets = append(secrets, password)
	}
	return secrets, nil
}

// label returns the database as errors name it: without password and settings.
func label(database string) string {
	u, err := url.Parse(database)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return database
	}
	if u.RawQuery, u.Fragment = "", ""; u.User != nil {
		u.User = url.User(u.User.Username())
	}
	return u.String()
}

// nearlyURL matches a database that looks like a misspelled URL. userPassword and passwordKey match passwords by their
// syntax, so a password in any other argument is hidden too.
var (
	keyWithAt    = regexp.MustCompile(`(^|&)[^=&]*@`)
	nearlyURL    = regexp.MustCompile(`(?i):.*@|^\s*postgres(ql)?[:/]`)
	userPassword = regexp.MustCompile(`(://[^:@/\s]*):\S*@`)
	passwordKey  = regexp.MustCompile(`(?i)(password\s*=\s*)[^\s&]+`)
)

// redact replaces each secret in the text by xxxxx, as url.URL.Redacted does.
func redact(text string, secrets []string) string {
	ordered := slices.SortedFunc(slices.Values(secrets), func(a, b string) int { return len(b) - len(a) }) // a part after the whole
	for _, secret := range ordered {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "xxxxx")
		}
	}
	text = userPassword.ReplaceAllString(text, "${1}:xxxxx@")
	return passwordKey.ReplaceAllString(text, "${1}xxxxx")
}
