package migrate

var retryableHTTP = &library{
	name:  "go-retryablehttp",
	calls: map[string]int{"NewClient": -1, "Client.Do": -1, "Get": -1, "Post": -1, "Head": -1, "PostForm": -1},
	plan: func(*site, *plan) error {
		return refuse("which statuses are repeated, what comes back in the end and which methods are sent again differ: " +
			"docs/migrating.md has the client that matches")
	},
}
