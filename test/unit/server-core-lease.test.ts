import { describe, expect, it } from 'vitest'
import type { NodeSettings } from '../../protocol/messages.ts'
import { RunLease } from '../../gpu-server/core/lease.ts'
import { KILLED, ServerCoreHarness } from '../support/server-core-harness.ts'

const LEASE_MS = 30_000
const settings = (fields: Partial<NodeSettings> = {}): Partial<NodeSettings> => ({
  run_lease_ms: LEASE_MS,
  heartbeat_ms: 5_000,
  ...fields,
})

/** One task of each policy, all acknowledged, at the start of a lease. */
function threeTasks(): ServerCoreHarness {
  const h = new ServerCoreHarness({ settings: settings() })
  h.run('waits', { on_node_loss: 'wait' })
  h.run('fails', { on_node_loss: 'fail' })
  h.run('requeues', { on_node_loss: 'requeue' })
  return h
}

const frozen = (h: ServerCoreHarness) =>
  [...h.device.processes.values()].filter((process) => process.isFrozen).map((process) => process.taskId)
const stopped = (h: ServerCoreHarness) => h.device.calls.filter((call) => call.startsWith('stop'))

describe('the run lease (R4)', () => {
  it('comes with heartbeats, which count refused requests once there are some', () => {
    const h = new ServerCoreHarness()
    h.advance(6_000)
    expect(h.bus.of('heartbeat').at(-1)?.body).not.toHaveProperty('requests')
    h.device.requestCounts = () => ({ full_queues: 1, refused: 0, expired: 0 })
    h.advance(6_000)
    expect(h.bus.of('heartbeat').at(-1)?.body).toMatchObject({ requests: { full_queues: 1 } })
  })

  it('counts from the sending of the heartbeat, not from its answer', () => {
    const h = threeTasks()
    h.bus.answerAfterMs = 4_000
    h.advance(6_000)
    const sentAt = h.bus.of('heartbeat').at(-1)?.sent_mono ?? 0
    h.advance(4_500)
    h.bus.silence()
    h.advance(sentAt + LEASE_MS - 1 - h.mono)
    expect(frozen(h)).toEqual([])
    h.advance(1)
    expect(frozen(h)).toEqual(['fails', 'requeues'])
  })

  it('freezes fail and requeue tasks at its end, and ends them after another lease', () => {
    const h = threeTasks()
    h.bus.silence()
    h.advance(LEASE_MS - 1)
    expect(frozen(h)).toEqual([])
    h.advance(1)
    expect(frozen(h)).toEqual(['fails', 'requeues'])
    h.advance(LEASE_MS - 1)
    expect(stopped(h)).toEqual([])
    h.advance(1)
    expect(stopped(h)).toEqual(['stop fails', 'stop requeues'])
    expect(h.start('fails')).toMatchObject({ outcome: 'running' })
    h.exit('fails', 137, 'killed')
    h.exit('requeues', 0)
    expect(h.start('fails')).toMatchObject({ outcome: 'finished' })
    expect(h.isVramFree(0, 8_001)).toBe(false)
  })

  it('causes ends that are reported as lease_ended once the controller is back', () => {
    const h = threeTasks()
    const speak = h.bus.silence()
    h.advance(2 * LEASE_MS)
    h.exit('fails', KILLED)
    h.exit('requeues', KILLED)
    speak()
    h.advance(30_000)
    expect([h.bus.finishedOf('fails'), h.bus.finishedOf('requeues'), h.bus.finishedOf('waits')]).toEqual([
      ['lease_ended'],
      ['lease_ended'],
      [],
    ])
    expect(frozen(h)).toEqual([])
  })

  it('does not replace an end that the process reached by itself, whatever was ordered later', () => {
    const h = threeTasks()
    const speak = h.bus.silence()
    h.advance(2 * LEASE_MS)
    expect(stopped(h)).toEqual(['stop fails', 'stop requeues'])
    h.exit('fails', 3)
    h.exit('requeues', 0)
    speak()
    h.advance(30_000)
    expect([h.bus.finishedOf('fails'), h.bus.finishedOf('requeues')]).toEqual([['failed'], ['completed']])
  })

  it('also freezes and ends a wait task while its start is not acknowledged', () => {
    const h = new ServerCoreHarness({ settings: settings() })
    h.run('acknowledged')
    h.bus.silence()
    h.run('not')
    h.advance(2 * LEASE_MS)
    expect(frozen(h)).toEqual(['not'])
    expect(stopped(h)).toEqual(['stop not'])
  })

  it('leaves a wait task frozen if only its start is acknowledged meanwhile', () => {
    const h = new ServerCoreHarness({ settings: settings() })
    const { events } = h.bus.script
    h.bus.silence()
    h.run('a')
    h.advance(LEASE_MS)
    h.bus.script.events = events
    h.advance(LEASE_MS)
    expect(frozen(h)).toEqual(['a'])
    expect(stopped(h)).toEqual([])
  })

  it('resumes frozen tasks when it is renewed, and starts again', () => {
    const h = threeTasks()
    const speak = h.bus.silence()
    h.advance(LEASE_MS + 1_000)
    expect(frozen(h)).toEqual(['fails', 'requeues'])
    speak()
    h.advance(6_000)
    expect(frozen(h)).toEqual([])
    h.advance(3 * LEASE_MS)
    expect(h.device.calls.slice(3)).toEqual([
      'freeze fails',
      'freeze requeues',
      'thaw fails',
      'thaw requeues',
    ])
  })

  it('freezes a launching task, and again when it runs', () => {
    const h = new ServerCoreHarness({ settings: settings() })
    h.bus.silence()
    h.start('a')
    h.advance(LEASE_MS)
    h.device.launched('a', { error: null, wantsGpu: true })
    expect(h.device.calls).toEqual(['launch a', 'freeze a', 'freeze a'])
  })

  it('prevents swaps of frozen tasks', () => {
    const h = threeTasks()
    h.swappedOut('requeues')
    h.bus.silence()
    h.advance(LEASE_MS)
    expect(h.swapOut('fails')).toMatchObject({ outcome: 'refused', reason: 'no_lease' })
    expect(h.swapIn('requeues')).toMatchObject({ outcome: 'refused', reason: 'no_lease' })
    expect(h.swapOut('waits')).toMatchObject({ outcome: 'accepted' })
  })

  it('ends nothing once the server has stopped: the guards do that', () => {
    const h = threeTasks()
    h.core.stop()
    h.advance(3 * LEASE_MS)
    expect(h.device.calls).toEqual(['launch waits', 'launch fails', 'launch requeues'])
  })

  it('is ignored if it comes from an old controller', () => {
    const h = threeTasks()
    h.controllerChanges(5)
    h.start('x')
    h.bus.epoch = 4
    h.advance(LEASE_MS)
    expect(frozen(h)).toEqual(['fails', 'requeues', 'x'])
    h.bus.epoch = 5
    h.advance(6_000)
    expect(frozen(h)).toEqual([])
  })

  it('is ignored if its epoch cannot be saved on disk', () => {
    const h = threeTasks()
    h.storage.isFailing = true
    h.advance(LEASE_MS)
    expect(frozen(h)).toEqual([])
    h.bus.epoch = 2
    h.advance(LEASE_MS)
    expect(frozen(h)).toEqual(['fails', 'requeues'])
    h.storage.isFailing = false
    h.advance(6_000)
    expect([frozen(h), h.storage.kept.highestEpoch]).toEqual([[], 2])
  })

  it('resumes nothing if its answer arrives after it has ended', () => {
    const h = threeTasks()
    h.bus.settings = { ...h.bus.settings, run_lease_ms: 1_500, heartbeat_ms: 5_000 }
    h.bus.answerAfterMs = 2_000
    h.advance(60_000)
    expect(frozen(h)).toEqual(['fails', 'requeues'])
    expect(h.device.calls.some((call) => call.startsWith('thaw'))).toBe(false)
  })

  it('is shortened as soon as the answer arrives, in any order of answers (R5)', () => {
    const lease = new RunLease(false)
    expect(lease.holds(0)).toBe(false)
    expect(lease.grant(1_000, 300_000)).toBe(true)
    expect(lease.grant(2_000, 20_000)).toBe(true)
    expect(lease.untilMono).toBe(22_000)
    expect(lease.grant(1_500, 300_000)).toBe(false)
    expect([lease.holds(21_999), lease.holds(22_000)]).toEqual([true, false])
  })

  it('holds without end where heartbeats are elided, once it was granted', () => {
    const lease = new RunLease(true)
    expect(lease.holds(0)).toBe(false)
    lease.grant(0, 1)
    expect(lease.holds(1_000_000_000)).toBe(true)
  })
})

describe('an attempt that the controller gave up', () => {
  it('is ended by a welcome and by a lease, and other attempts are unaffected', () => {
    const h = threeTasks()
    h.bus.script.heartbeat = () => ({
      op: 'lease',
      settings: h.bus.settings,
      stop: [
        { task_id: 'waits', attempt: 1 },
        { task_id: 'fails', attempt: 2 },
        { task_id: 'absent', attempt: 1 },
      ],
    })
    h.advance(20_000)
    expect(stopped(h)).toEqual(['stop waits'])
    h.exit('waits', KILLED)
    expect(h.bus.finishedOf('waits')).toEqual(['stopped'])
  })
})
