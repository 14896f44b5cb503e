// Package killtest kills worker processes of retryriver with SIGKILL at random moments, suspends others with SIGSTOP
// until all jobs have ended, and then checks the database and a file that the handlers wrote to. It has tests only.
// Each of them runs on SQLite, with two processes on one file, and on PostgreSQL, which it starts.
//
// By default go test runs a short form, with few jobs and kills, that takes about a minute: after the leader is killed,
// River needs up to 21 seconds for a new one, and its rescuer looks for stuck jobs when a leader is elected and every
// 30 seconds. The full form is
//
//	go test -C contrib/retryriver ./killtest -v -count 1 -timeout 10m -jobs 500 -processes 2 -kills 20 -suspensions 5
//
// It prints its seed and accepts one with -seed. A seed repeats the jobs, the pauses and the victims, but the scheduler
// decides where a victim is interrupted. With -short nothing runs.
package killtest
