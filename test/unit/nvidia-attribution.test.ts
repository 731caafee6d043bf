import { expect, test } from 'vitest'
import { attribute, type Owner } from '../../gpu-server/devices/nvidia/attribution.ts'
import type { GpuSnapshot, HostSnapshot } from '../../gpu-server/devices/nvidia/snapshot.ts'

const NONE: ReadonlySet<number> = new Set()
const nobodyHere = (): boolean => false

function gpu(fields: Partial<GpuSnapshot>): GpuSnapshot {
  return {
    index: 0,
    uuid: 'GPU-0',
    model: 'stub',
    memory: { physicalMib: 1000, freeMib: 1000 },
    isMig: false,
    utilizationPercent: 0,
    processes: [],
    busyPids: null,
    faults: [],
    ...fields,
  }
}

const host = (...gpus: GpuSnapshot[]): HostSnapshot => ({ driver: '570.1', gpus })
const owner = (task: string, ...processes: (readonly number[])[]): Owner<string> => ({
  task,
  gpus: [0],
  processes,
})
const used = (...pids: number[]): GpuSnapshot['processes'] => pids.map((pid) => ({ pid, usedMib: 100 }))

test('A process counts for the task that it belongs to, and every other process is foreign', () => {
  const { uses, foreignMib } = attribute(
    host(gpu({ processes: used(1, 2, 3, 4) })),
    [owner('a', [1], [2]), owner('b', [3])],
    nobodyHere,
    NONE,
  )
  expect(uses.get('a')?.usedMib).toEqual([200])
  expect(uses.get('b')?.usedMib).toEqual([100])
  expect(foreignMib).toEqual([100])
})

test('A process is also recognized by its number in a nested namespace', () => {
  const { uses, foreignMib } = attribute(
    host(gpu({ processes: used(7) })),
    [owner('a', [5001, 7])],
    nobodyHere,
    NONE,
  )
  expect(uses.get('a')?.usedMib).toEqual([100])
  expect(foreignMib).toEqual([0])
})

test('A nested number of two tasks, or of a local process, identifies no task', () => {
  const two = attribute(
    host(gpu({ processes: used(7) })),
    [owner('a', [5001, 7]), owner('b', [5002, 7])],
    nobodyHere,
    NONE,
  )
  expect(two.uses.get('a')?.usedMib).toEqual([0])
  expect(two.foreignMib).toEqual([100])
  const here = attribute(host(gpu({ processes: used(7) })), [owner('a', [5001, 7])], (pid) => pid === 7, NONE)
  expect(here.foreignMib).toEqual([100])
})

test('A local process number takes precedence over an equal nested number', () => {
  const { uses } = attribute(
    host(gpu({ processes: used(7) })),
    [owner('a', [5001, 7]), owner('b', [7])],
    nobodyHere,
    NONE,
  )
  expect([uses.get('a')?.usedMib, uses.get('b')?.usedMib]).toEqual([[0], [100]])
})

test('VRAM of a task on a GPU that was not assigned to it is foreign there', () => {
  const { uses, foreignMib } = attribute(
    host(gpu({ processes: used(1) }), gpu({ index: 1, processes: used(1) })),
    [owner('a', [1])],
    nobodyHere,
    NONE,
  )
  expect(uses.get('a')?.usedMib).toEqual([100])
  expect(foreignMib).toEqual([0, 100])
})

test('If the driver reports no amounts, the foreign share is the remainder', () => {
  const processes = [
    { pid: 1, usedMib: 100 },
    { pid: 2, usedMib: null },
  ]
  const memory = { physicalMib: 1000, freeMib: 650 }
  expect(attribute(host(gpu({ processes, memory })), [owner('a', [1])], nobodyHere, NONE).foreignMib).toEqual(
    [250],
  )
  expect(
    attribute(host(gpu({ processes, memory: null })), [owner('a', [1])], nobodyHere, NONE).foreignMib,
  ).toEqual([0])
  const own = attribute(host(gpu({ processes, memory })), [owner('b', [2])], nobodyHere, NONE)
  expect(own.uses.get('b')?.usedMib).toEqual([null])
  expect(own.foreignMib).toEqual([100])
})

test('A GPU that lists no processes leaves all use unknown and nothing foreign', () => {
  const { uses, foreignMib } = attribute(
    host(gpu({ processes: null, utilizationPercent: 90 })),
    [owner('a', [1])],
    nobodyHere,
    NONE,
  )
  expect(uses.get('a')).toEqual({ usedMib: [null], isBusy: null })
  expect(foreignMib).toEqual([0])
})

test('A task is busy if it is busy on any of its GPUs, and idle if it is busy on none', () => {
  const both = { ...owner('a', [1]), gpus: [0, 1] }
  const on = (first: readonly number[], second: readonly number[] | null): boolean | null | undefined =>
    attribute(
      host(
        gpu({ busyPids: first, processes: used(1) }),
        gpu({ index: 1, busyPids: second, utilizationPercent: null, processes: used(1) }),
      ),
      [both],
      nobodyHere,
      NONE,
    ).uses.get('a')?.isBusy
  expect(on([1], [])).toBe(true)
  expect(on([2], [1])).toBe(true)
  expect(on([2], [2])).toBe(false)
  expect(on([1], null)).toBe(true)
  expect(on([2], null)).toBe(null)
})
