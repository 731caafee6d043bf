/** What a GPU server prepares before starts, and what it reports about it. */
import { describe, expect, it } from 'vitest'
import type { Heartbeat } from '../../protocol/messages.ts'
import { ServerCoreHarness } from '../support/server-core-harness.ts'

const harness = () => new ServerCoreHarness({ features: ['image', 'prepare'] })
const lastSnapshot = (h: ServerCoreHarness) => h.bus.snapshots().at(-1)
const preparing = (h: ServerCoreHarness): Heartbeat['preparing'] => lastSnapshot(h)?.preparing

describe('a prepare command', () => {
  it('commits no VRAM, starts nothing, and is obeyed once', () => {
    const h = harness()
    expect(h.prepare('a')).toMatchObject({ outcome: 'accepted', residency: 'none' })
    expect(h.prepare('a')).toMatchObject({ outcome: 'accepted' })
    expect(h.device.calls.filter((call) => call.startsWith('prepare'))).toHaveLength(1)
    expect(h.device.processes.size).toBe(0)
    expect(h.isVramFree(0, 9_000)).toBe(true)
  })

  it('is refused without the feature that the task needs, and for an attempt that was seen', () => {
    expect(new ServerCoreHarness().prepare('a')).toMatchObject({
      outcome: 'refused',
      reason: 'feature_missing',
    })
    const h = harness()
    h.run('a')
    expect(h.prepare('a')).toMatchObject({ outcome: 'refused', reason: 'old_attempt' })
    expect(new ServerCoreHarness({ allowExec: false, features: ['image'] }).prepare('a')).toMatchObject({
      reason: 'exec_not_allowed',
    })
  })

  it('beyond the limit of preparations is refused, and burns no attempt', () => {
    const h = harness()
    for (let i = 0; i < 8; i++) expect(h.prepare(`t${i}`).outcome).toBe('accepted')
    expect(h.prepare('late')).toMatchObject({ outcome: 'refused', reason: 'node_full' })
    expect(h.start('late').outcome).toBe('accepted')
  })
})

describe('a preparation', () => {
  it('is reported in heartbeats with its bytes, and at once when it is over', () => {
    const h = harness()
    h.prepare('a')
    h.device.preparing.get('a')?.onProgress({ bytesDone: 5, bytesTotal: 9 })
    h.advance(6_000)
    expect(preparing(h)).toEqual([
      { task_id: 'a', attempt: 1, state: 'preparing', bytes_done: 5, bytes_total: 9 },
    ])
    const before = h.bus.snapshots().length
    h.device.preparing.get('a')?.done(null)
    h.settle()
    expect(h.bus.snapshots().length).toBe(before + 1)
    expect(preparing(h)).toMatchObject([{ task_id: 'a', state: 'prepared' }])
  })

  it('that fails is reported with its reason until the controller gives it up', () => {
    const h = harness()
    h.prepare('a')
    const refused = { cause: 'task', code: 'image_not_available' } as const
    h.device.preparing.get('a')?.done({ error: 'manifest unknown', refused })
    h.settle()
    expect(preparing(h)).toMatchObject([
      { state: 'failed', start_refused: refused, detail: 'manifest unknown' },
    ])
    h.bus.script.heartbeat = () => ({
      op: 'lease',
      settings: h.bus.settings,
      stop: [{ task_id: 'a', attempt: 1 }],
    })
    h.advance(12_000)
    expect(preparing(h)).toBeUndefined()
    expect(h.device.calls).toContain('unprepare a')
  })

  it('is used by the start of its attempt, and removed by the start of a later one', () => {
    const h = harness()
    h.prepare('a')
    h.prepare('b')
    h.start('a')
    h.start('b', { attempt: 2 })
    expect(h.device.calls.filter((call) => call.startsWith('unprepare'))).toEqual(['unprepare b'])
    h.advance(6_000)
    expect(preparing(h)).toBeUndefined()
  })

  it('whose start is refused is removed', () => {
    const h = harness()
    h.prepare('a')
    expect(h.start('a', { vram_mib: 20_000 })).toMatchObject({ outcome: 'refused', reason: 'no_vram' })
    expect(h.device.calls).toContain('unprepare a')
  })

  it('is not kept across a restart of the server: its hello names none', () => {
    const h = harness()
    h.prepare('a')
    h.bounce()
    expect(h.device.calls).toContain('unprepare a')
    expect(preparing(h)).toBeUndefined()
    expect(h.prepare('a').outcome).toBe('accepted')
  })
})

describe('images of waiting tasks', () => {
  it('are reported if the host has them, from the answer that names them on', () => {
    const h = harness()
    h.device.images.add('team/train:1')
    h.bus.script.heartbeat = () => ({
      op: 'lease',
      settings: h.bus.settings,
      stop: [],
      images: ['team/train:1', 'team/other:2'],
    })
    h.advance(12_000)
    expect(lastSnapshot(h)?.images).toEqual(['team/train:1'])
    h.bus.script.heartbeat = () => ({ op: 'lease', settings: h.bus.settings, stop: [] })
    h.advance(12_000)
    expect(lastSnapshot(h)?.images).toBeUndefined()
  })
})

it('a start reports the digest of its image', () => {
  const h = harness()
  h.start('a', { image: 'team/train:1' })
  const imageDigest = `sha256:${'1'.repeat(64)}`
  h.device.launched('a', { error: null, wantsGpu: false, imageDigest })
  h.settle()
  const entries = h.bus.of('events').flatMap(({ body }) => (body.op === 'events' ? body.entries : []))
  expect(entries).toMatchObject([{ kind: 'started', image_digest: imageDigest }])
})
