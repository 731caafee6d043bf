import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Attempt } from '../../gpu-server/core/attempt.ts'
import { newAttempt } from '../../gpu-server/core/attempt.ts'
import { DurableState } from '../../gpu-server/core/durable-state.ts'
import { openDiskStorage } from '../../gpu-server/disk-storage.ts'
import type { DiskStorage } from '../../gpu-server/disk-storage.ts'
import { StateFault } from '../../gpu-server/state-fault.ts'
import { seededStream } from '../../simulator/kernel/seeded-random.ts'

let folder: string
let open: DiskStorage | null = null
const faults: StateFault[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'headroom-disk-'))
  faults.length = 0
})

afterEach(() => {
  open?.close()
  open = null
  rmSync(folder, { recursive: true, force: true })
})

const journal = () => join(folder, 'journal')

/** Simulates a process that died and one that starts: nothing is flushed, and the lock is released. */
function reopened(): DiskStorage {
  open?.close()
  open = null
  open = openDiskStorage({ folder, onFault: (fault) => faults.push(fault), compactFromBytes: 4_096 })
  return open
}

function starts(): DurableState {
  return new DurableState(reopened(), seededStream(1, 'boot'))
}

function attempt(taskId: string, number = 1): Attempt {
  const shape = {
    gpus: [0],
    vramMib: 100,
    gpuMode: 'shared',
    noswap: 0,
    priority: 2,
    onNodeLoss: 'wait',
    isLease: false,
  } as const
  return newAttempt({ taskId, attempt: number, ...shape }, 0)
}

const finished = (task_id: string, number = 1) =>
  ({
    kind: 'finished',
    task_id,
    attempt: number,
    outcome: 'completed',
    exit_code: 0,
    detail: 'späť\n',
  }) as const

describe('the state of a GPU server on disk', () => {
  it('survives the death of the process: boot, epoch, attempts, and unacknowledged ends', () => {
    const state = starts()
    expect(state.boot.counter).toBe(1)
    state.accepts({ epoch: 7, controller: 'p7', event_seq: 12 })
    state.addStarting(attempt('a'))
    state.addStarting(attempt('b', 3))
    state.addStarting(attempt('c'))
    state.burn('d', 2)
    const grown = attempt('a')
    Object.assign(grown, { vramMib: 900, residency: 'swapped_out', generation: 4, isStartAcknowledged: true })
    state.keep(grown)
    state.persist()
    state.addFinished(finished('b', 3))
    state.addFinished(finished('c'))
    state.acknowledge(1)
    state.burn('e', 1)

    const again = starts()
    expect([again.boot.counter, again.highestEpoch]).toEqual([2, 7])
    expect([again.seen.highest('a'), again.seen.highest('b'), again.seen.highest('d')]).toEqual([1, 3, 2])
    expect([again.seen.isBurned('d', 2), again.seen.isBurned('b', 3)]).toEqual([true, false])
    expect([...again.living.values()]).toMatchObject([
      { taskId: 'a', vramMib: 900, residency: 'swapped_out', generation: 4, isStartAcknowledged: true },
    ])
    expect(again.outbox.entries()).toMatchObject([{ n: 1, task_id: 'c', detail: 'späť\n' }])
  })

  it('grows by one line per command, however large the state is', () => {
    const state = starts()
    for (let i = 0; i < 150; i++) state.burn(`task-${i}`, 1)
    reopened()
    const again = new DurableState(open as DiskStorage, seededStream(1, 'boot'))
    const before = statSync(journal()).size
    again.burn('one more', 1)
    expect(statSync(journal()).size - before).toBeLessThan(150)
  })

  it('stays bounded however long the server runs', () => {
    const state = starts()
    let largest = 0
    for (let i = 0; i < 200; i++) {
      state.keep(attempt('a', 1))
      state.persist()
      largest = Math.max(largest, (open as DiskStorage).bytes)
    }
    expect(largest).toBeLessThan(6_000)
    expect(starts().living.get('a')).toMatchObject({ vramMib: 100 })
  })

  it('keeps everything saved before a torn tail, whatever its length', () => {
    const state = starts()
    state.burn('a', 1)
    const whole = readFileSync(journal())
    state.burn('b', 1)
    const longer = readFileSync(journal())
    for (let bytes = whole.byteLength; bytes < longer.byteLength; bytes += 7) {
      open?.close()
      writeFileSync(journal(), longer.subarray(0, bytes))
      const again = reopened().load()
      expect([...again.attempts.keys()]).toEqual(['a'])
    }
  })

  it('keeps everything saved before a tail of zeros or garbage', () => {
    starts().burn('a', 1)
    const whole = readFileSync(journal())
    for (const tail of [Buffer.alloc(500), Buffer.from('deadbeef {"changes":[]}\n'), Buffer.from('x')]) {
      open?.close()
      writeFileSync(journal(), Buffer.concat([whole, tail]))
      expect([...reopened().load().attempts.keys()]).toEqual(['a'])
    }
    appendFileSync(journal(), 'after a clean start')
    expect([...reopened().load().attempts.keys()]).toEqual(['a'])
  })

  it('is refused if it is damaged before its end, with file and line in one message', () => {
    const state = starts()
    state.burn('a', 1)
    state.burn('b', 1)
    const bytes = readFileSync(journal())
    open?.close()
    open = null
    for (const at of [12, bytes.indexOf('"a"')]) {
      const damaged = Buffer.from(bytes)
      damaged[at] = (damaged[at] as number) ^ 1
      writeFileSync(journal(), damaged)
      expect(() => reopened()).toThrow(/^\S+journal: line \d is damaged[^\n]+$/)
      expect(readFileSync(journal()).equals(damaged)).toBe(true)
    }
  })

  it('of a later version is refused', () => {
    const json = '{"snapshot":{"format":2}}'
    writeFileSync(journal(), `${crc32(json).toString(16).padStart(8, '0')} ${json}\n`)
    expect(() => reopened()).toThrow(/^\S+journal: has format 2; this version reads format 1$/)
  })

  it('is used by one server at a time', () => {
    starts()
    expect(() => openDiskStorage({ folder, onFault: () => {} })).toThrow(
      new StateFault(`state folder ${folder}: another GPU server uses it`),
    )
    expect(reopened().load().bootCounter).toBe(1)
  })

  it('is never written again after the disk has failed once (R10)', () => {
    const state = starts()
    const { size } = statSync(journal())
    // The folder is deleted under the server, so that the next snapshot fails.
    rmSync(folder, { recursive: true })
    for (let i = 0; i < 200 && faults.length === 0; i++) {
      state.keep(attempt('a'))
      state.persist()
    }
    expect(faults).toHaveLength(1)
    expect([state.burn('b', 1), state.persist(), faults.length]).toEqual([false, false, 1])
    expect(size).toBeGreaterThan(0)
  })

  it('reports where and why it cannot be created', () => {
    writeFileSync(join(folder, 'file'), '')
    expect(() => openDiskStorage({ folder: join(folder, 'file', 'state'), onFault: () => {} })).toThrow(
      /^\S+file\/state: ENOTDIR[^\n]*$/,
    )
    if (existsSync('/proc/self'))
      expect(() => openDiskStorage({ folder: '/proc/none/state', onFault: () => {} })).toThrow(
        /^\/proc\/none\/state: ENOENT[^\n]*$/,
      )
  })
})
