// Package jobsui is a page to look at the jobs of any retryjob.Admin and to change them: counts by status, dead letters
// by error, a list with filter and search, the timeline of a job's attempts, and replay, cancel and purge of one job, of
// a selection or of all that match. It is an http.Handler that asks a service's own login for the access of a request. Command
// retryjobs serves it for a database.
//
// The page is HTML that the server renders. All state is in the address and every action is the POST of a form, so it
// works without JavaScript. The little there is keeps the page live, selects rows and continues long actions. It loads
// nothing from elsewhere and needs no build.
//
// A request holds one page of jobs without their payloads, and takes 10 s at most.
//
// This package may change until it says otherwise.
package jobsui
