import { describe, expect, it } from 'vitest'
import type { Envelope } from '../../protocol/envelope.ts'
import { EMPTY_NODE_STATE } from '../../gpu-server/core/storage.ts'
import { OUTPUT, ServerCoreHarness } from '../support/server-core-harness.ts'

const LEASE_MS = 30_000
const hello = (h: ServerCoreHarness): Envelope['body'] => (h.bus.of('hello').at(-1) as Envelope).body
const runsAgain = (h: ServerCoreHarness) => h.device.calls.filter((call) => call.startsWith('thaw'))

describe('a restarted server finds its tasks alive (R4)', () => {
  it('and reports them in its first hello: their VRAM, their residency, and their idle time', () => {
    const h = new ServerCoreHarness({ gpus: 2 })
    h.run('a', { gpus: [1], vram_mib: 2_000, noswap: 1 })
    h.run('b', { vram_mib: 3_000 })
    h.device.uses('b', false, 0)
    h.swappedOut('b')
    h.bounce(() => h.advance(7_000))
    expect(hello(h)).toMatchObject({
      finished_unacked: [],
      tasks: [
        { task_id: 'a', attempt: 1, residency: 'resident', gpus: [1], vram_mib: 2_000 },
        { task_id: 'b', attempt: 1, residency: 'swapped_out', gpus: [0], vram_mib: 3_000 },
      ],
    })
    expect(h.device.calls.filter((call) => call.startsWith('launch'))).toEqual(['launch a', 'launch b'])
    expect(h.swapOut('a')).toMatchObject({ outcome: 'refused', reason: 'noswap' })
    expect([h.isVramFree(1, 7_000), h.isVramFree(1, 7_001), h.isVramFree(0, 9_000)]).toEqual([
      true,
      false,
      true,
    ])
  })

  it('and a wakeable task stays so until its swap-in', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    h.run('b')
    h.swapOut('a')
    h.device.suspended('a', 'done', { isWakeable: true })
    h.settle()
    h.swappedOut('b')
    h.bounce()
    expect([h.report('a')?.wakeable, h.report('b')?.wakeable]).toEqual([true, undefined])
    expect(h.swapIn('a')).toMatchObject({ outcome: 'accepted' })
    h.device.resumed('a')
    h.bounce()
    expect(h.report('a')?.residency).toBe('resident')
    expect(h.report('a')).not.toHaveProperty('wakeable')
  })

  it('with their granted VRAM and noswap, whatever they were started with', () => {
    const h = new ServerCoreHarness()
    h.run('a', { vram_mib: 1_000 })
    expect(h.growth('grant', 'a', { mib: 4_000 })).toMatchObject({ outcome: 'accepted' })
    expect(h.growth('set_noswap', 'a', { noswap: 1 })).toMatchObject({ outcome: 'accepted' })
    h.bounce()
    expect(h.report('a')).toMatchObject({ vram_mib: 4_000 })
    expect(h.swapOut('a')).toMatchObject({ outcome: 'refused', reason: 'noswap' })
  })

  it('and resets earlier decisions about their residency: a swap in progress is cancelled', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    h.run('b')
    h.swappedOut('b')
    h.swapOut('a')
    h.swapIn('b')
    h.bounce()
    expect([h.report('a')?.residency, h.report('b')?.residency]).toEqual(['resident', 'swapped_out'])
    expect(h.swapOut('a', { generation: 1 })).toMatchObject({
      outcome: 'refused',
      reason: 'stale_generation',
    })
    expect(h.swapOut('a', { generation: h.report('a')?.generation ?? 0 })).toMatchObject({
      outcome: 'accepted',
    })
  })

  it('and uses the residency on its disk if the device does not know it', () => {
    const h = new ServerCoreHarness()
    h.run('in')
    h.run('out')
    h.swappedOut('out')
    h.device.knowsResidency = false
    h.bounce()
    expect([h.report('in')?.residency, h.report('out')?.residency]).toEqual(['resident', 'swapped_out'])
  })

  it('and repeats the start event only of tasks whose event may not have arrived', () => {
    const h = new ServerCoreHarness()
    h.run('told')
    h.bus.script.events = () => null
    h.run('untold')
    const before = h.bus.of('events').length
    h.bounce()
    const started = h.bus
      .of('events')
      .slice(before)
      .flatMap(({ body }) =>
        body.op === 'events' ? body.entries.map(({ kind, task_id }) => `${kind} ${task_id}`) : [],
      )
    expect(started).toEqual(['started untold'])
  })

  it('and tells their guards which of them end with the lease', () => {
    const h = new ServerCoreHarness()
    h.run('waits', { on_node_loss: 'wait' })
    h.run('fails', { on_node_loss: 'fail' })
    h.bus.script.events = () => null
    h.run('untold', { on_node_loss: 'wait' })
    const leased = () =>
      [...h.device.processes.values()].filter((process) => process.isLeased).map((process) => process.taskId)
    expect(leased()).toEqual(['fails', 'untold'])
    for (const process of h.device.processes.values()) process.isLeased = process.taskId === 'waits'
    h.bounce()
    expect(leased()).toEqual(['fails', 'untold'])
  })

  it('and resumes frozen tasks after the controller has answered, not earlier', () => {
    const h = new ServerCoreHarness({ settings: { run_lease_ms: LEASE_MS } })
    h.run('a', { on_node_loss: 'fail' })
    const speak = h.bus.silence()
    h.advance(LEASE_MS)
    h.bounce(() => h.advance(1_000))
    h.advance(20_000)
    expect(h.device.processes.get('a')?.isFrozen).toBe(true)
    expect(runsAgain(h)).toEqual([])
    speak()
    h.advance(15_000)
    expect(runsAgain(h)).toEqual(['thaw a'])
  })

  it('and accepts that they are busy and wait for an allocation meanwhile', () => {
    const h = new ServerCoreHarness()
    h.run('a', { vram_mib: 1_000 })
    h.bounce(() => {
      h.device.uses('a', true, 0)
      h.device.wants('a', 5_000)
    })
    expect(h.report('a')).toMatchObject({ wants_gpu: true, idle_ms: 0 })
    expect(h.bus.events().filter(({ kind }) => kind === 'allocation_wanted')).toMatchObject([
      { task_id: 'a', mib: 5_000 },
    ])
    h.growth('grant', 'a', { mib: 5_000 })
    expect(h.device.calls.at(-1)).toBe('grant 5000 a')
  })

  it('and keeps their wish to return, even if the device has lost it', () => {
    const h = new ServerCoreHarness()
    h.run('wanted')
    h.run('not')
    h.swappedOut('wanted')
    h.swappedOut('not')
    h.device.uses('wanted', true, 0)
    h.settle()
    h.bounce(() => h.device.processes.forEach((process) => (process.wantsGpu = false)))
    expect([h.report('wanted')?.wants_gpu, h.report('not')?.wants_gpu]).toEqual([true, false])
  })

  it('and still counts swapped-out tasks in host memory', () => {
    const h = new ServerCoreHarness({ hostSwapMib: 4_000 })
    h.run('out', { vram_mib: 3_000 })
    h.swappedOut('out')
    h.run('a', { vram_mib: 2_000 })
    h.bounce()
    const generation = h.report('a')?.generation ?? 0
    expect(h.swapOut('a', { generation })).toMatchObject({ outcome: 'refused', reason: 'no_host_memory' })
  })

  it('and counts tasks on missing GPUs nowhere', () => {
    const h = new ServerCoreHarness()
    h.run('a', { gpus: [0], vram_mib: 2_000 })
    const process = h.device.processes.get('a')
    if (process === undefined) throw new Error('it does not run')
    h.storage.kept = EMPTY_NODE_STATE
    h.device.processes.set('a', { ...process, gpus: [7], start: { ...process.start, gpus: [7] } })
    h.bounce()
    expect(h.report('a')).toMatchObject({ gpus: [7], residency: 'resident' })
    expect(h.isVramFree(0, 9_000)).toBe(true)
  })
})

describe('a task that ended while its server was stopped', () => {
  it.each([
    [0, false, 'completed'],
    [3, false, 'failed'],
    [null, false, 'lost'],
    [137, true, 'lease_ended'],
  ])('with exit code %s, by the lease: %s, is reported as %s', (exitCode, didLeaseEnd, outcome) => {
    const h = new ServerCoreHarness()
    h.run('a')
    h.bus.script.events = () => null
    h.bounce(() => h.device.exit('a', exitCode, null, didLeaseEnd))
    expect(hello(h)).toMatchObject({ tasks: [], finished_unacked: [{ task_id: 'a', attempt: 1 }] })
    expect(h.bus.finishedOf('a')).toEqual([outcome])
    expect(h.storage.kept.outbox).toMatchObject([
      { kind: 'finished', task_id: 'a', outcome, exit_code: exitCode },
    ])
    expect([...h.device.ended.keys()]).toEqual([])
    expect(h.start('a')).toMatchObject({ outcome: 'finished' })
  })

  it('is reported as lost if the guards kept no data', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    h.restart()
    expect(h.bus.finishedOf('a')).toEqual(['lost'])
    expect(h.start('a')).toMatchObject({ outcome: 'gone' })
  })

  it('was never seen if it had not been launched', () => {
    const h = new ServerCoreHarness()
    h.start('a')
    h.restart()
    expect(h.bus.finishedOf('a')).toEqual([])
    expect(h.start('a')).toMatchObject({ outcome: 'never_seen' })
  })

  it('is reported once: an end that was already durable is only removed from the device', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    h.exit('a')
    h.run('b')
    const started = h.device.everLaunched.size
    const end = { exitCode: 0, detail: null, didEndItself: true, didLeaseEnd: false }
    const start = {
      taskId: 'a',
      attempt: 1,
      gpus: [0],
      vramMib: 1_000,
      gpuMode: 'shared',
      noswap: 0,
      priority: 2,
      onNodeLoss: 'wait',
    } as const
    h.device.ended.set('a/1', { start: { ...start, isLease: false }, end })
    const before = h.bus.of('events').length
    h.bounce()
    h.advance(30_000)
    expect([h.bus.of('events').length, h.device.ended.size, h.device.everLaunched.size]).toEqual([
      before,
      0,
      started,
    ])
  })

  it('stays on the device while the disk fails', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    h.storage.isFailing = true
    h.exit('a', 5)
    h.storage.isFailing = false
    expect(h.device.ended.size).toBe(1)
    h.bounce()
    expect([h.bus.finishedOf('a'), h.device.ended.size]).toEqual([['failed'], 0])
  })

  it('is not sent again after a restart once it was acknowledged and later changes were saved', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    h.exit('a')
    h.run('b')
    const before = h.bus.of('events').length
    h.bounce()
    expect(h.bus.of('events').length).toBe(before)
    expect(
      h.storage.changes.filter(({ kind }) => kind === 'finished' || kind === 'acknowledged'),
    ).toMatchObject([
      { kind: 'finished', event: { task_id: 'a' } },
      { kind: 'acknowledged', taskId: 'a', attempt: 1 },
    ])
  })
})

describe('a change that must survive a restart', () => {
  it('is refused while the disk fails: a grant, a change of noswap', () => {
    const h = new ServerCoreHarness()
    h.run('a', { vram_mib: 1_000 })
    h.storage.isFailing = true
    expect(h.growth('grant', 'a', { mib: 4_000 })).toMatchObject({
      outcome: 'refused',
      reason: 'disk_failed',
    })
    expect(h.growth('set_noswap', 'a', { noswap: 1 })).toMatchObject({
      outcome: 'refused',
      reason: 'disk_failed',
    })
    h.storage.isFailing = false
    h.bounce()
    expect(h.report('a')).toMatchObject({ vram_mib: 1_000 })
    expect(h.swapOut('a', { generation: h.report('a')?.generation ?? 0 })).toMatchObject({
      outcome: 'accepted',
    })
  })

  it('of the lease is sent to the guards at every renewal, as an instant', () => {
    const h = new ServerCoreHarness({ settings: { run_lease_ms: LEASE_MS } })
    expect(h.device.leaseUntil).toBe(h.clock.now() + LEASE_MS)
    h.advance(20_000)
    const sentMono = h.bus.of('heartbeat').at(-1)?.sent_mono ?? 0
    expect(h.device.leaseUntil).toBe(h.clock.now() - h.mono + sentMono + LEASE_MS)
  })
})

describe('a server that does not run commands', () => {
  it('refuses commands and accepts leases', () => {
    const h = new ServerCoreHarness({ allowExec: false })
    expect(h.start('a')).toMatchObject({ outcome: 'refused', reason: 'exec_not_allowed' })
    expect(h.start('b', { command: null })).toMatchObject({ outcome: 'accepted' })
  })
})

describe('a server without a container runtime', () => {
  const image = 'registry.example/train:v2'

  it('names no feature, refuses a command of an image for a reason of the host, and runs nothing', () => {
    const h = new ServerCoreHarness()
    expect(h.bus.of('hello').at(-1)?.body).toMatchObject({ features: [] })
    expect(h.start('a', { image })).toMatchObject({
      outcome: 'refused',
      reason: 'feature_missing',
      start_refused: { cause: 'host', code: 'no_container_runtime' },
    })
    expect([...h.device.everLaunched]).toEqual([])
    // The refusal uses up the attempt, so that no repeat of the message runs it.
    expect(h.start('a', { image })).toMatchObject({ outcome: 'never_seen' })
    expect(h.start('b')).toMatchObject({ outcome: 'accepted' })
  })

  it('runs no task without its limits', () => {
    const h = new ServerCoreHarness({ features: ['image', 'env'] })
    const limits = { memory_mib: 512 }
    expect(h.start('a', { image, limits })).toMatchObject({ outcome: 'refused', reason: 'feature_missing' })
    expect([...h.device.everLaunched]).toEqual([])
    const vramOnly = { vram_limit_mib: 512 }
    expect(h.start('b', { limits: vramOnly })).toMatchObject({
      outcome: 'refused',
      reason: 'feature_missing',
    })
    const measures = new ServerCoreHarness({ features: ['vram_limit'] })
    expect(measures.start('a', { limits: vramOnly })).toMatchObject({ outcome: 'accepted' })
    expect(measures.start('b', { limits })).toMatchObject({ outcome: 'refused', reason: 'feature_missing' })
    const able = new ServerCoreHarness({ features: ['limits'] })
    able.run('a', { limits, name: 'train' })
    able.bounce()
    const asked = able.bus.envelope({ op: 'read_attempt', task_id: 'a', attempt: 1 })
    expect(able.bus.ask(asked)).toMatchObject({ op: 'attempt', limits })
  })

  it('says where clients reach its ports, if the device forwards to them', () => {
    const h = new ServerCoreHarness({ features: [] })
    h.run('a', { name: 'serve' })
    const asked = h.bus.envelope({ op: 'read_attempt', task_id: 'a', attempt: 1 })
    expect(h.bus.ask(asked)).not.toHaveProperty('port_addresses')
    const long = { target: 8002, address: null, detail: `the proxy\n${'x'.repeat(1000)}` } as const
    Object.assign(h.device, {
      addressesOf: () => [{ target: 8001, address: '192.0.2.1:30100', detail: null }, long],
    })
    expect(h.bus.ask(asked)).toMatchObject({
      op: 'attempt',
      port_addresses: [
        { target: 8001, address: '192.0.2.1:30100', detail: null },
        { target: 8002, address: null, detail: expect.stringMatching(/^the proxy x{502}$/) },
      ],
    })
  })

  it('is distinguished from one that names the feature', () => {
    const h = new ServerCoreHarness({ features: ['image'] })
    expect(h.bus.of('hello').at(-1)?.body).toMatchObject({ features: ['image'] })
    h.run('a', { image, name: 'train' })
    h.bounce()
    // An administrator who adopts the attempt gets a task of the same image.
    const asked = h.bus.envelope({ op: 'read_attempt', task_id: 'a', attempt: 1 })
    expect(h.bus.ask(asked)).toMatchObject({ op: 'attempt', command: ['train'], image })
  })
})

describe('the output of a task', () => {
  const ask = (h: ServerCoreHarness, task_id: string) =>
    h.bus.ask(
      h.bus.envelope({ op: 'read_log', task_id, attempt: 1, stream: 'stdout', offset: 5, max_bytes: 4 }),
    )

  it('is read from the requested offset, also of an attempt that has ended', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    h.exit('a')
    const data = OUTPUT.subarray(5, 9).toString('base64')
    expect(ask(h, 'a')).toEqual({
      op: 'log',
      task_id: 'a',
      attempt: 1,
      stream: 'stdout',
      offset: 5,
      data,
      is_ended: false,
    })
  })

  it('of an unknown attempt is refused', () => {
    expect(ask(new ServerCoreHarness(), 'a')).toEqual({ op: 'refused', reason: 'unknown_attempt' })
  })
})

describe('a reserve deficit on a GPU', () => {
  it('makes the task leave that was swapped out longest ago, P0 last, and is reported', () => {
    const h = new ServerCoreHarness({ gpus: 2 })
    h.run('p0', { priority: 0 })
    h.run('busy', { wantsGpu: true })
    h.run('noswap', { noswap: 1 })
    h.run('elsewhere', { gpus: [1] })
    h.run('left before')
    h.swappedOut('left before')
    h.swapIn('left before')
    h.device.resumed('left before')
    h.run('leaves')
    const before = h.device.calls.length
    h.device.listener?.freeMeasured(0, 400)
    h.device.listener?.freeMeasured(0, 400)
    h.settle()
    expect(h.device.calls.slice(before)).toEqual(['suspend leaves'])
    expect(h.bus.events().filter(({ kind }) => kind === 'reserve_breached')).toMatchObject([
      { task_id: 'leaves', gpu: 0, free_mib: 400 },
    ])
    h.device.suspended('leaves')
    h.settle()
    expect(h.report('leaves')?.residency ?? h.bus.events().at(-1)).toMatchObject({
      kind: 'residency',
      residency: 'swapped_out',
      generation: 2,
    })
    h.device.listener?.freeMeasured(0, 700)
    h.device.suspended('left before')
    h.device.listener?.freeMeasured(0, 800)
    expect(h.device.calls.slice(before)).toEqual(['suspend leaves', 'suspend left before', 'suspend p0'])
  })

  it('without a victim is reported, at most once a minute', () => {
    const h = new ServerCoreHarness()
    h.device.listener?.freeMeasured(0, 1)
    h.run('a', { noswap: 1 })
    for (let second = 0; second < 90; second++) {
      h.device.listener?.freeMeasured(0, 300)
      h.advance(1_000)
    }
    expect(h.bus.events().filter(({ kind }) => kind === 'reserve_breached').length).toBe(2)
  })

  it('never moves a task again that is not swappable', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    h.swapOut('a')
    h.device.suspended('a', 'not_swappable', { whyNot: 'it uses managed memory' })
    h.settle()
    expect(h.bus.events().at(-1)).toMatchObject({
      because: 'not_swappable',
      detail: 'it uses managed memory',
    })
    expect(h.swapOut('a')).toMatchObject({ outcome: 'refused', reason: 'noswap' })
    const before = h.device.calls.length
    h.device.listener?.freeMeasured(0, 1)
    expect(h.device.calls.length).toBe(before)
  })
})
