package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"syscall"
)

const (
	// As the kubelet reads of an answer.
	maxBodyBytes = 10 << 10
	maxRedirects = 10
	userAgent    = "kube-probe/headroom"
)

func checkTCP(ctx context.Context, address string) error {
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return connection.Close()
}

// checkHTTP succeeds with a status from 200 to 399. As the kubelet, it follows redirects on the same host,
// takes one to another host as success, and verifies no certificate.
func checkHTTP(ctx context.Context, scheme, address, path string, headers http.Header) error {
	target, err := url.Parse(path)
	if err != nil {
		target = &url.URL{Path: path}
	}
	target.Scheme, target.Host = scheme, address
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return err
	}
	for name, value := range map[string]string{"User-Agent": userAgent, "Accept": "*/*"} {
		if _, isSet := headers[name]; !isSet {
			headers.Set(name, value)
		}
	}
	request.Header, request.Host = headers, headers.Get("Host")
	client := http.Client{
		Transport: &http.Transport{
			TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
			ForceAttemptHTTP2:  true,
			DisableCompression: true,
		},
		CheckRedirect: func(next *http.Request, before []*http.Request) error {
			if len(before) >= maxRedirects {
				return fmt.Errorf("more than %d redirects", maxRedirects)
			}
			if next.URL.Hostname() != before[0].URL.Hostname() {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(response.Body, maxBodyBytes)); err != nil {
		return err
	}
	if response.StatusCode < 200 || response.StatusCode >= 400 {
		return fmt.Errorf("HTTP status %d", response.StatusCode)
	}
	return nil
}

// checkGRPC calls grpc.health.v1.Health/Check without TLS: a message is one frame of HTTP/2's data, with a
// flag and its length in front, and the only field of both messages has the number 1.
func checkGRPC(ctx context.Context, address, service string) error {
	var message []byte
	if service != "" {
		message = append(binary.AppendUvarint([]byte{1<<3 | 2}, uint64(len(service))), service...)
	}
	frame := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	target := "http://" + address + "/grpc.health.v1.Health/Check"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(frame))
	if err != nil {
		return err
	}
	request.Header = http.Header{
		"Content-Type": {"application/grpc"}, "Te": {"trailers"}, "User-Agent": {userAgent},
	}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	client := http.Client{Transport: &http.Transport{Protocols: protocols, DisableCompression: true}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBodyBytes))
	if err != nil {
		return err
	}
	status := response.Trailer.Get("Grpc-Status") + response.Header.Get("Grpc-Status")
	if response.StatusCode != http.StatusOK || status != "0" {
		why := response.Trailer.Get("Grpc-Message") + response.Header.Get("Grpc-Message")
		return fmt.Errorf("HTTP status %d, gRPC status %q %s", response.StatusCode, status, why)
	}
	serving := []byte{0, 0, 0, 0, 2, 1 << 3, 1}
	if !bytes.Equal(body, serving) {
		return fmt.Errorf("service %q is not SERVING", service)
	}
	return nil
}

// checkExec runs the command in a process group of its own, which ends with the deadline.
func checkExec(ctx context.Context, command []string) error {
	if len(command) == 0 {
		return errors.New("no command")
	}
	run := exec.CommandContext(ctx, command[0], command[1:]...)
	run.Stdout, run.Stderr = os.Stdout, os.Stderr
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	run.Cancel = func() error { return syscall.Kill(-run.Process.Pid, syscall.SIGKILL) }
	err := run.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
