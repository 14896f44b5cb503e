// Package drivers holds tests only. They show what retrysql does with the errors of real drivers, and with real servers
// that refuse, deadlock, are killed, and lose the reply to a commit: SQLite in this process, and PostgreSQL and
// MariaDB, which the tests start on loopback if their programs are installed. They are in a separate module, so a
// program that imports retrysql does not get a driver.
package drivers
