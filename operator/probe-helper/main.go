// Does the check of a probe from inside the container, and none while the container is swapped out: its
// processes are stopped then, and answer nothing. Admission writes the command line
// (operator/admission/swap-probes.ts). Static and without dependencies, so that it runs in any image.
//
//	probe install TARGET
//	probe http|tcp|grpc|exec [OPTIONS] -- PATH|SERVICE|COMMAND…
//
// It exits with 0 if the check succeeds, else with 1.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	podIPVariable = "HEADROOM_POD_IP"
	lookEvery     = 100 * time.Millisecond
)

var errOut = errors.New("the container is swapped out")

type check func(ctx context.Context) error

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: probe install TARGET, or probe http|tcp|grpc|exec [OPTIONS] -- …")
	}
	if args[0] == "install" {
		return install(args[1])
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	timeout := flags.Int("timeout", 1, "seconds for the check")
	ready := flags.String("ready", "", "file that exists if the last check succeeded: repeat that while out")
	port := flags.String("port", "", "of the pod")
	scheme := flags.String("scheme", "http", "http or https")
	headers := http.Header{}
	flags.Func("header", "NAME: VALUE", func(line string) error {
		name, value, isHeader := strings.Cut(line, ": ")
		if !isHeader {
			return errors.New("must be NAME: VALUE")
		}
		headers.Add(name, value)
		return nil
	})
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	address := net.JoinHostPort(os.Getenv(podIPVariable), *port)
	kinds := map[string]check{
		"tcp":  func(ctx context.Context) error { return checkTCP(ctx, address) },
		"http": func(ctx context.Context) error { return checkHTTP(ctx, *scheme, address, flags.Arg(0), headers) },
		"grpc": func(ctx context.Context) error { return checkGRPC(ctx, address, flags.Arg(0)) },
		"exec": func(ctx context.Context) error { return checkExec(ctx, flags.Args()) },
	}
	do, isKnown := kinds[args[0]]
	if !isKnown {
		return fmt.Errorf("%s is no kind of probe", args[0])
	}
	err := unlessOut(do, time.Duration(*timeout)*time.Second)
	if *ready != "" {
		return remembered(*ready, err)
	}
	if err == errOut {
		return nil
	}
	return err
}

// unlessOut returns errOut if the container is swapped out when the check begins, or meanwhile.
func unlessOut(do check, timeout time.Duration) error {
	if isOut() {
		return errOut
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case err := <-done:
			if err != nil && isOut() {
				return errOut
			}
			return err
		case <-look.C:
			if isOut() {
				cancel()
				<-done
				return errOut
			}
		}
	}
}

// isOut reports whether a process of this container is stopped, or traced: while the driver copies, it holds
// one process of the container, and the others run. Own processes are those of the same cgroup, because pods
// may share a PID namespace; process 1 is of this container, or of none that is ever stopped.
func isOut() bool {
	own, _ := os.ReadFile("/proc/self/cgroup")
	names, _ := filepath.Glob("/proc/[0-9]*")
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(name))
		if err != nil || pid == os.Getpid() {
			continue
		}
		cgroup, err := os.ReadFile(filepath.Join(name, "cgroup"))
		if pid != 1 && (err != nil || !bytes.Equal(cgroup, own)) {
			continue
		}
		stat, _ := os.ReadFile(filepath.Join(name, "stat"))
		// proc_pid_stat(5): the state follows the name in parentheses, which may contain anything.
		state := bytes.TrimPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
		if bytes.HasPrefix(state, []byte("T")) || bytes.HasPrefix(state, []byte("t")) {
			return true
		}
	}
	return false
}

// remembered keeps the result of a readiness check in a file, and repeats it while the container is out.
func remembered(file string, result error) error {
	if result == errOut {
		if _, err := os.Stat(file); err != nil {
			return errors.New("the container is swapped out, and its last check failed")
		}
		return nil
	}
	var err error
	if result == nil {
		err = os.WriteFile(file, nil, 0o644)
	} else if err = os.Remove(file); errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return result
}

// install copies this program: the file of an earlier run may be in use.
func install(target string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	source, err := os.Open(self)
	if err != nil {
		return err
	}
	defer source.Close()
	next := target + ".new"
	copied, err := os.OpenFile(next, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(copied, source)
	// Users of any container run it, whatever the umask says.
	if err := errors.Join(err, copied.Chmod(0o755), copied.Close()); err != nil {
		return err
	}
	return os.Rename(next, target)
}
