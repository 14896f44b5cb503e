// Package killtest kills worker processes of retryriver with SIGKILL at random moments, suspends others with SIGSTOP
// until all jobs have ended, and then looks at what is left in the database and in a file that the handlers wrote to.
// It has tests only; each of them runs over SQLite, two processes on one file, and over PostgreSQL, which it starts.
//
// What go test runs is a short form, with few jobs and kills, that ends within a minute or so: a killed leader's lease
// costs River up to 21 seconds, and its rescuer looks for stuck jobs when a leader is elected and every 30 seconds. The
// full form is
//
//	go test -C contrib/retryriver ./killtest -v -count 1 -timeout 10m -jobs 500 -processes 2 -kills 20 -suspensions 5
//
// It prints its seed and takes one with -seed. A seed repeats the jobs, the pauses and the victims; what the victims
// were at is the scheduler's choice. With -short nothing runs.
package killtest
