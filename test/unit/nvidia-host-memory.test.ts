import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { hostMemoryLeft } from '../../gpu-server/devices/nvidia/host-memory.ts'
import { mappedFacts, processFacts } from '../../gpu-server/devices/nvidia/process-facts.ts'

const MIB = 1024 * 1024
let folder: string
let files: { proc: string; cgroup: string }

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'headroom-kernel-'))
  files = { proc: join(folder, 'proc'), cgroup: join(folder, 'cgroup') }
  write('proc/meminfo', `MemTotal: 9999999 kB\nMemFree: 1 kB\nMemAvailable:   ${8000 * 1024} kB\n`)
})
afterEach(() => rmSync(folder, { recursive: true }))

function write(path: string, text: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true })
  writeFileSync(join(folder, path), text)
}

function limit(path: string, max: number | 'max', currentMib: number, inactiveFileMib = 0): void {
  write(`cgroup/${path}/memory.max`, max === 'max' ? 'max\n' : `${max * MIB}\n`)
  write(`cgroup/${path}/memory.current`, `${currentMib * MIB}\n`)
  write(`cgroup/${path}/memory.stat`, `anon 5\ninactive_file ${inactiveFileMib * MIB}\nactive_file 7\n`)
}

test('Without limits, the available host memory is that of the host', () => {
  write('proc/7/cgroup', '0::/\n')
  expect(hostMemoryLeft(files, 7)).toBe(8000)
})

test('The limits of a cgroup and its ancestors count; unused file pages count as free', () => {
  write('proc/7/cgroup', '0::/a/b\n')
  limit('a/b', 'max', 10)
  expect(hostMemoryLeft(files, 7)).toBe(8000)
  limit('a', 1000, 900, 300)
  expect(hostMemoryLeft(files, 7)).toBe(400)
  limit('a/b', 500, 450)
  expect(hostMemoryLeft(files, 7)).toBe(50)
})

test('A cgroup beyond its limit has no memory left', () => {
  write('proc/7/cgroup', '0::/a\n')
  limit('a', 100, 150)
  expect(hostMemoryLeft(files, 7)).toBe(0)
})

test('A path that leads out of the namespace means the visible root', () => {
  write('proc/7/cgroup', '0::/../../system.slice\n')
  limit('', 600, 500)
  expect(hostMemoryLeft(files, 7)).toBe(100)
})

test('With version 1, the memory controller counts, except for the value that means no limit', () => {
  write('proc/7/cgroup', '12:cpu,cpuacct:/x\n4:memory:/docker/abc\n1:name=systemd:/x\n')
  write('cgroup/memory/docker/abc/memory.limit_in_bytes', '9223372036854771712\n')
  write('cgroup/memory/docker/abc/memory.usage_in_bytes', `${MIB}\n`)
  expect(hostMemoryLeft(files, 7)).toBe(8000)
  write('cgroup/memory/docker/abc/memory.limit_in_bytes', `${700 * MIB}\n`)
  write('cgroup/memory/docker/abc/memory.usage_in_bytes', `${600 * MIB}\n`)
  write('cgroup/memory/docker/abc/memory.stat', `inactive_file 1\ntotal_inactive_file ${50 * MIB}\n`)
  expect(hostMemoryLeft(files, 7)).toBe(150)
})

test('The memory of a host without data is unknown, and a process that has ended is not limited', () => {
  expect(hostMemoryLeft(files, 7)).toBe(8000)
  write('proc/meminfo', 'MemTotal: 5 kB\n')
  expect(hostMemoryLeft(files, 7)).toBe(null)
})

test('A process has its numbers in nested namespaces and may be stopped', () => {
  write('proc/7/status', 'Name:\tpython\nState:\tR (running)\nNSpid:\t7\t12\t1\n')
  expect(processFacts(files.proc, 7)).toEqual({ isStopped: false, pids: [7, 12, 1] })
  write('proc/7/status', 'Name:\tpython\nState:\tT (stopped)\n')
  expect(processFacts(files.proc, 7)).toEqual({ isStopped: true, pids: [7] })
  write('proc/7/status', 'NSpid:\t-1 x\n')
  expect(processFacts(files.proc, 7)?.pids).toEqual([7])
  expect(processFacts(files.proc, 8)).toBe(null)
})

test('Libraries and unified memory are detected from the mappings of a process', () => {
  write(
    'proc/7/maps',
    [
      '7f0000000000-7f0000001000 r-xp 00000000 00:00 0 /usr/lib/libcuda.so.570.86.15',
      '7f1000000000-7f1000001000 r--p 00000000 00:00 0 /opt/lib/libnccl.so.2.21',
      '200000000000-200000200000 rw-s 00000000 00:06 1   /dev/nvidia-uvm',
      '200000200000-200000280000 rw-s 00000000 00:06 1   /dev/nvidia-uvm',
      '200000300000-200100000000 ---p 00000000 00:06 1   /dev/nvidia-uvm',
      '200100000000-200200000000 rw-s 00000000 00:06 1   /dev/nvidia-uvm-tools',
      '',
    ].join('\n'),
  )
  expect(mappedFacts(files.proc, 7)).toEqual({ hasCuda: true, hasNccl: true, uvmMib: 3 })
  write('proc/7/maps', '7f1000000000-7f1000001000 r--p 00000000 00:00 0 /opt/lib/libcudart.so.12\n')
  expect(mappedFacts(files.proc, 7)).toEqual({ hasCuda: false, hasNccl: false, uvmMib: 0 })
  expect(mappedFacts(files.proc, 8)).toBe(null)
})
