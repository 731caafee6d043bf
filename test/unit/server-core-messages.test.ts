import { describe, expect, it } from 'vitest'
import type { Envelope } from '../../protocol/envelope.ts'
import { MAX_DETAIL_LENGTH, MAX_EVENTS } from '../../protocol/limits.ts'
import { COMPACT_FROM_ENTRIES, Outbox } from '../../gpu-server/core/outbox.ts'
import { createMemoryStorage } from '../../gpu-server/core/storage.ts'
import { ServerCoreHarness } from '../support/server-core-harness.ts'
import { acknowledgeAll } from '../support/scripted-bus.ts'

const gaps = (messages: readonly Envelope[]) =>
  messages.slice(1).map((message, i) => message.sent_mono - (messages[i] as Envelope).sent_mono)

describe('the hello of a server', () => {
  it('is reported once for each refusal reason in a row, and repeated until it is welcome', () => {
    const refusals: string[] = []
    const h = new ServerCoreHarness({ onRefused: (reason) => refusals.push(reason), isStarted: false })
    h.bus.script.hello = () => ({ op: 'refused', reason: 'nvidia_in_trial' })
    h.core.start()
    h.advance(60_000)
    expect(h.bus.of('hello').length).toBeGreaterThan(2)
    expect(refusals).toEqual(['nvidia_in_trial'])
    h.bus.script.hello = () => ({ op: 'welcome', settings: h.bus.settings, stop: [] })
    h.advance(60_000)
    h.bus.script.hello = () => ({ op: 'refused', reason: 'nvidia_in_trial' })
    h.bounce()
    h.advance(60_000)
    expect(refusals).toEqual(['nvidia_in_trial', 'nvidia_in_trial'])
  })

  it('contains identity, attempts and unacknowledged ends', () => {
    const h = new ServerCoreHarness({ gpus: 2 })
    h.run('a', { gpus: [1], vram_mib: 2_000 })
    h.run('b', { wantsGpu: true })
    h.swappedOut('a')
    h.run('c')
    h.start('d')
    h.bus.script.events = () => null
    h.exit('c')
    h.bus.script.heartbeat = () => ({ op: 'refused', reason: 'unknown_node' })
    h.advance(7_000)
    const { body } = h.bus.of('hello').at(-1) as Envelope
    expect(body).toMatchObject({
      node_id: 'node-1',
      name: 'alpha',
      address: '10.0.0.7',
      host_swap_mib: 100_000,
      signals_wanted: true,
      device: 'simulated',
      allow_exec: true,
      gpus: [{ index: 0 }, { index: 1, physical_mib: 10_000 }],
      finished_unacked: [{ task_id: 'c', attempt: 1 }],
      tasks: [
        {
          task_id: 'a',
          residency: 'swapped_out',
          generation: 2,
          gpus: [1],
          vram_mib: 2_000,
          wants_gpu: false,
        },
        { task_id: 'b', residency: 'resident', generation: 1, wants_gpu: true, idle_ms: 0 },
        { task_id: 'd', residency: 'none', generation: 0 },
      ],
    })
  })

  it('is repeated at growing intervals until it is welcome (R11)', () => {
    const h = new ServerCoreHarness({ isStarted: false })
    h.bus.script.hello = () => ({ op: 'refused', reason: 'starting' })
    h.core.start()
    h.advance(120_000)
    const waits = gaps(h.bus.of('hello'))
    expect(waits.slice(0, 3).map((ms, i) => Math.round(ms / (250 * 2 ** i)))).toEqual([1, 1, 1])
    expect(Math.max(...waits)).toBeLessThanOrEqual(12_000)
    expect(waits.at(-1)).toBeGreaterThanOrEqual(8_000)
    h.bus.script.hello = () => ({ op: 'welcome', settings: h.bus.settings, stop: [] })
    h.advance(15_000)
    const count = h.bus.of('hello').length
    h.advance(60_000)
    expect(h.bus.of('hello').length).toBe(count)
  })

  it('is sent once, however many answers request it, and nothing else is sent meanwhile', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    h.bus.answerAfterMs = 4_500
    h.bus.script.heartbeat = () => ({ op: 'refused', reason: 'unknown_node' })
    h.bus.script.events = () => ({ op: 'refused', reason: 'unknown_node' })
    h.advance(4_000)
    h.exit('a')
    h.advance(4_499)
    h.bus.script.hello = () => null
    const { length } = h.bus.sent
    h.advance(31_000)
    const said = h.bus.sent.slice(length)
    expect(new Set(said.map(({ body }) => body.op))).toEqual(new Set(['hello']))
    expect(Math.min(...gaps(said))).toBeGreaterThan(5_000)
  })

  it('is not sent by a stopped server', () => {
    const h = new ServerCoreHarness({ isStarted: false })
    h.bus.silence()
    h.core.start()
    h.advance(5_000)
    h.core.stop()
    const { length } = h.bus.sent
    h.advance(600_000)
    expect(h.bus.sent.length).toBe(length)
  })
})

describe('the boot counter (R6)', () => {
  it('grows at every start, durable before the first message', () => {
    const h = new ServerCoreHarness()
    h.restart()
    h.restart()
    expect(h.bus.of('hello').map((hello) => hello.boot.counter)).toEqual([1, 2, 3])
    expect(new Set(h.bus.of('hello').map((hello) => hello.boot.random)).size).toBe(3)
    expect(h.storage.kept.bootCounter).toBe(3)
  })

  it('grows above the one that the controller knows, and numbering restarts', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    h.bus.script.heartbeat = (message) =>
      message.boot.counter === 1
        ? { op: 'state_reset', counter_above: 41 }
        : { op: 'lease', settings: h.bus.settings, stop: [] }
    h.advance(7_000)
    const hello = h.bus.of('hello').at(-1) as Envelope
    expect(hello.boot.counter).toBe(42)
    expect(hello.seq).toBe(1)
    expect(hello.body).toMatchObject({ tasks: [{ task_id: 'a' }] })
    expect(h.storage.kept.bootCounter).toBe(42)
    expect(h.start('b', { node_boot: h.bus.of('hello')[0]?.boot as Envelope['boot'] })).toMatchObject({
      reason: 'other_boot',
    })
    expect(h.start('c')).toMatchObject({ outcome: 'accepted' })
  })

  it('is also reset by an answer to hello, and events are sent with the new boot', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    h.bus.script.events = () => null
    h.exit('a')
    h.bus.script.heartbeat = () => ({ op: 'refused', reason: 'unknown_node' })
    h.bus.script.hello = (message) =>
      message.boot.counter < 9
        ? { op: 'state_reset', counter_above: 8 }
        : { op: 'welcome', settings: h.bus.settings, stop: [] }
    h.bus.script.events = (message) =>
      message.boot.counter < 9 ? { op: 'refused', reason: 'unknown_node' } : acknowledgeAll(message)
    h.advance(60_000)
    expect(h.bus.of('events').at(-1)).toMatchObject({
      boot: { counter: 9 },
      body: { entries: [{ kind: 'finished', task_id: 'a' }] },
    })
    expect(h.stop('a')).toMatchObject({ outcome: 'gone' })
  })

  it('is reset once, however many messages of the old boot get that answer', () => {
    const h = new ServerCoreHarness()
    const reset = (message: Envelope) =>
      message.boot.counter < 42 ? ({ op: 'state_reset', counter_above: 41 } as const) : null
    h.run('a')
    h.bus.answerAfterMs = 4_500
    h.bus.script.heartbeat = reset
    h.bus.script.events = (message) => reset(message) ?? acknowledgeAll(message)
    h.advance(4_000)
    h.exit('a')
    h.advance(60_000)
    expect(new Set(h.bus.sent.map(({ boot }) => boot.counter))).toEqual(new Set([1, 42]))
    expect(h.bus.of('events').at(-1)).toMatchObject({
      boot: { counter: 42 },
      body: { entries: [{ kind: 'finished' }] },
    })
  })

  it('keeps the server silent while the disk fails, and commands for the old boot are executed', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    h.storage.isFailing = true
    h.bus.script.heartbeat = () => ({ op: 'state_reset', counter_above: 41 })
    h.advance(60_000)
    expect(h.bus.of('hello').length).toBe(1)
    expect(h.stop('a')).toMatchObject({ outcome: 'accepted' })
    h.storage.isFailing = false
    h.advance(15_000)
    expect(h.bus.of('hello')[1]).toMatchObject({ boot: { counter: 42 } })
  })
})

describe('a snapshot (R6)', () => {
  it('gets its number when it is taken: later snapshots contain more', () => {
    const h = new ServerCoreHarness()
    for (let n = 0; n < 8; n++) {
      h.run(`task-${n}`)
      h.advance(6_500)
    }
    const snapshots = h.bus.of('heartbeat')
    const numbers = h.bus.sent.map((message) => message.seq)
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
    expect(new Set(numbers).size).toBe(numbers.length)
    const counts = snapshots.map(({ body }) => (body.op === 'heartbeat' ? body.tasks.length : 0))
    expect(counts).toEqual(counts.toSorted((a, b) => a - b))
    expect(counts.at(-1)).toBe(8)
  })

  it('is sent every heartbeat interval, plus or minus a fifth, as set by the controller', () => {
    const h = new ServerCoreHarness({ settings: { heartbeat_ms: 2_000 } })
    h.advance(60_000)
    const waits = gaps(h.bus.of('heartbeat'))
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(1_600)
    expect(Math.max(...waits)).toBeLessThanOrEqual(2_400)
    expect(new Set(waits).size).toBeGreaterThan(10)
  })
})

describe('after the bus has reconnected', () => {
  it('a server sends a heartbeat within half a second, and every interval from then on', () => {
    const h = new ServerCoreHarness()
    h.advance(6_500)
    const before = h.bus.of('heartbeat').length
    h.core.reconnected()
    h.advance(500)
    expect(h.bus.of('heartbeat').length).toBe(before + 1)
    h.advance(3_400)
    expect(h.bus.of('heartbeat').length).toBe(before + 1)
    h.advance(2_700)
    expect(h.bus.of('heartbeat').length).toBe(before + 2)
  })

  it('a server that is back before the controller does not wait a whole interval for it', () => {
    const h = new ServerCoreHarness()
    h.advance(6_500)
    h.bus.isControllerAway = true
    h.core.reconnected()
    h.advance(1_000)
    h.bus.isControllerAway = false
    const before = h.bus.of('heartbeat').length
    h.advance(1_000)
    expect(h.bus.of('heartbeat').length).toBe(before + 1)
  })

  it('a server backs off to one message per second until the controller answers', () => {
    const h = new ServerCoreHarness()
    h.advance(6_500)
    const before = h.bus.of('heartbeat').length
    h.bus.isControllerAway = true
    h.core.reconnected()
    h.advance(60_000)
    const waits = gaps(h.bus.of('heartbeat').slice(before))
    expect(waits.slice(0, 5).every((wait, i) => wait <= 300 * Math.pow(2, i))).toBe(true)
    expect(waits.slice(5).every((wait) => wait >= 800 && wait <= 1_200)).toBe(true)
    h.bus.isControllerAway = false
    h.advance(6_000)
    const answered = h.bus.of('heartbeat').length
    h.bus.isControllerAway = true
    h.advance(7_000)
    expect(h.bus.of('heartbeat').length).toBeGreaterThan(answered + 2)
  })

  it('a server without a welcome sends its hello at once', () => {
    const h = new ServerCoreHarness({ isStarted: false })
    h.bus.script.hello = () => ({ op: 'refused', reason: 'starting' })
    h.core.start()
    h.advance(60_000)
    const before = h.bus.of('hello').length
    h.bus.script.hello = () => ({ op: 'welcome', settings: h.bus.settings, stop: [] })
    h.core.reconnected()
    h.advance(600)
    expect(h.bus.of('hello').length).toBe(before + 1)
    h.advance(60_000)
    expect(h.bus.of('hello').length).toBe(before + 1)
  })

  it('a stopped server stays silent', () => {
    const h = new ServerCoreHarness()
    h.core.stop()
    const before = h.bus.of('heartbeat').length
    h.core.reconnected()
    h.advance(10_000)
    expect(h.bus.of('heartbeat').length).toBe(before)
  })
})

describe('the outbox (R1, R8)', () => {
  it('is repeated with the same id at growing intervals until it is acknowledged', () => {
    const h = new ServerCoreHarness()
    h.bus.script.events = () => null
    h.run('a')
    h.run('b')
    h.advance(90_000)
    const repeats = h.bus.of('events')
    expect(new Set(repeats.map((message) => message.id)).size).toBe(1)
    expect(new Set(repeats.map((message) => JSON.stringify(message.body))).size).toBe(1)
    expect(repeats[0]?.body).toMatchObject({ entries: [{ n: 1, task_id: 'a' }] })
    h.bus.script.events = acknowledgeAll
    h.advance(20_000)
    expect(h.bus.events().map((event) => [event.n, event.kind, event.task_id])).toEqual([
      [1, 'started', 'a'],
      [2, 'started', 'b'],
    ])
    const { length } = h.bus.of('events')
    h.advance(60_000)
    expect(h.bus.of('events').length).toBe(length)
  })

  it('waits at most ten seconds between repeats', () => {
    const h = new ServerCoreHarness()
    h.bus.script.events = () => ({ op: 'refused', reason: 'wrong_sender' })
    h.run('a')
    const at: number[] = []
    const { events } = h.bus.script
    h.bus.script.events = (message) => {
      at.push(h.mono)
      return events(message)
    }
    h.advance(90_000)
    const waits = at.slice(1).map((mono, i) => mono - (at[i] as number))
    expect(waits.slice(0, 4).every((ms, i) => i === 0 || ms > (waits[i - 1] as number))).toBe(true)
    expect(Math.max(...waits)).toBeLessThanOrEqual(12_000)
  })

  it('keeps entries that an old controller acknowledges', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    h.controllerChanges(5)
    h.start('x')
    h.bus.epoch = 4
    h.exit('a')
    h.advance(30_000)
    expect(
      h.command(
        { op: 'stop', task_id: 'a', attempt: 1, valid_until_mono: h.mono, node_boot: h.boot, reason: '' },
        5,
      ),
    ).toMatchObject({
      outcome: 'finished',
    })
  })

  it('accepts acknowledgements only of entries that were sent', () => {
    const h = new ServerCoreHarness()
    const askedAt: number[] = []
    h.bus.script.events = () => {
      askedAt.push(h.mono)
      return { op: 'events_ack', up_to: askedAt.length === 1 ? 0 : 1_000_000 }
    }
    h.run('a')
    h.run('b')
    h.advance(30_000)
    expect(
      h.bus
        .of('events')
        .map(({ body }) => (body.op === 'events' ? body.entries.map((entry) => entry.n) : [])),
    ).toEqual([[1], [1], [2]])
    expect((askedAt[1] as number) - (askedAt[0] as number)).toBeGreaterThanOrEqual(200)
  })

  it('is sent in messages of limited size, oldest first', () => {
    const h = new ServerCoreHarness({ physicalMib: 20_000 })
    const speak = h.bus.silence()
    for (let n = 0; n < MAX_EVENTS; n++) h.run(`task-${n}`, { vram_mib: 1 })
    for (let n = 0; n < MAX_EVENTS; n++) h.exit(`task-${n}`, 1, '\u001b'.repeat(2 * MAX_DETAIL_LENGTH))
    speak()
    h.advance(60_000)
    const numbers = h.bus.events().map((event) => event.n)
    expect(numbers).toEqual(Array.from({ length: 2 * MAX_EVENTS }, (_, i) => i + 1))
  })

  it('makes an end durable before it is sent, and keeps it over a restart', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    h.run('b')
    h.bus.script.events = () => null
    h.storage.isFailing = true
    h.exit('a', 0)
    h.advance(30_000)
    expect(h.bus.finishedOf('a')).toEqual([])
    h.storage.isFailing = false
    h.advance(15_000)
    expect(h.bus.finishedOf('a')).toEqual(['completed'])
    h.bus.script.events = acknowledgeAll
    h.advance(15_000)
    h.bus.script.events = () => null
    h.exit('b', 3)
    h.restart()
    const hello = h.bus.of('hello').at(-1) as Envelope
    expect(hello.body).toMatchObject({ tasks: [], finished_unacked: [{ task_id: 'b', attempt: 1 }] })
    expect(h.bus.of('events').at(-1)).toMatchObject({
      boot: hello.boot,
      body: { entries: [{ n: 1, task_id: 'b', outcome: 'failed', exit_code: 3 }] },
    })
  })

  it('makes an end durable by the next heartbeat if the disk failed at first', () => {
    const h = new ServerCoreHarness()
    h.bus.script.events = () => null
    h.run('a')
    h.storage.isFailing = true
    h.exit('a')
    h.storage.isFailing = false
    expect(h.storage.kept.outbox).toEqual([])
    h.advance(6_000)
    expect(h.storage.kept.outbox.map((event) => event.kind)).toEqual(['started', 'finished'])
  })

  it('of a stopped server is not repeated', () => {
    const h = new ServerCoreHarness()
    h.bus.silence()
    h.run('a')
    h.advance(6_000)
    h.core.stop()
    const { length } = h.bus.sent
    h.device.listener?.exited('a', 1, { exitCode: 0, detail: null, didEndItself: true, didLeaseEnd: false })
    h.advance(120_000)
    expect(h.bus.sent.length).toBe(length)
    expect(h.storage.kept.outbox).toEqual([])
  })

  it('leads to a new hello if the controller does not know the node', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    h.bus.script.events = (message) =>
      h.bus.of('hello').length > 1 ? acknowledgeAll(message) : { op: 'refused', reason: 'unknown_node' }
    h.exit('a')
    h.advance(4_000)
    expect(h.bus.of('hello').length).toBe(2)
    expect(h.stop('a')).toMatchObject({ outcome: 'gone' })
  })

  it('confirms an attempt when its start is acknowledged, and no other attempt of the task (R4)', () => {
    const h = new ServerCoreHarness({ settings: { run_lease_ms: 20_000 } })
    h.bus.answerAfterMs = 1_000
    h.run('a')
    h.exit('a', null)
    h.run('a', { attempt: 2 })
    h.bus.script.events = () => null
    h.advance(1_000)
    expect(h.stop('a')).toMatchObject({ outcome: 'finished' })
    h.bus.silence()
    h.advance(60_000)
    expect(h.device.calls.slice(2)).toEqual(['freeze a/2', 'stop a/2'])
  })
})

describe('answers out of order', () => {
  it('keep the settings of the later message in force', () => {
    const h = new ServerCoreHarness({
      settings: { heartbeat_ms: 10_000, run_lease_ms: 100_000, safety_reserve_mib: 1_000 },
    })
    const sentAt: number[] = []
    h.bus.script.heartbeat = () => {
      sentAt.push(h.mono)
      const isSlow = sentAt.length % 2 === 1
      h.bus.answerAfterMs = isSlow ? 9_900 : 0
      return {
        op: 'lease',
        settings: { ...h.bus.settings, safety_reserve_mib: isSlow ? 5_000 : 1_000 },
        stop: [],
      }
    }
    let overtaken = 0
    for (let second = 0; second < 600; second++) {
      h.advance(1_000)
      const [slow, quick] = sentAt.slice(sentAt.length % 2 === 0 ? -2 : -3)
      if (slow === undefined || quick === undefined || sentAt.length % 2 === 1) continue
      if (quick > slow + 9_900 || h.mono < slow + 9_900) continue
      overtaken += 1
      expect(h.isVramFree(0, 9_000)).toBe(true)
    }
    expect(overtaken).toBeGreaterThan(10)
  })
})

describe('an answer of a new controller to a message from before the present mark', () => {
  /** The answer to the first message of this kind comes after a command with a later mark was obeyed. */
  const answeredLate = (verb: 'events' | 'heartbeat') => {
    const h = new ServerCoreHarness()
    h.run('a')
    h.bus.stamped = (answer) => ({ ...answer, controller: `p${answer.epoch}`, event_seq: 5 })
    h.controllerChanges(2)
    h.bus.answerAfterMs = 1_000
    h.bus.epoch = 3
    const before = h.bus.of(verb).length
    if (verb === 'events') h.exit('a')
    else while (h.bus.of(verb).length === before) h.advance(100)
    const obeyed = h.bus.envelope({ op: 'stop', task_id: 'a', attempt: 1, reason: '', ...h.address() }, 2)
    h.bus.tell({ ...obeyed, controller: 'p2', event_seq: 9 })
    const restore = h.bus.silence()
    h.advance(8_000)
    return { h, restore }
  }
  const present = { epoch: 2, controller: 'p2', event_seq: 9 }

  it('acknowledges no event: it is sent again, with the present mark', () => {
    const { h, restore } = answeredLate('events')
    expect(h.storage.kept).toMatchObject({ highestEpoch: 2, outbox: [{ kind: 'finished', task_id: 'a' }] })
    expect(h.bus.of('events').at(-1)).toMatchObject(present)
    restore()
    h.advance(20_000)
    expect(h.storage.kept).toMatchObject({ highestEpoch: 3, controller: 'p3' })
    const sent = h.bus.of('events').length
    h.advance(60_000)
    expect(h.bus.of('events')).toHaveLength(sent)
  })

  it('grants no lease, and the next heartbeat carries the present mark', () => {
    const { h, restore } = answeredLate('heartbeat')
    expect(h.bus.of('heartbeat').at(-1)).toMatchObject(present)
    restore()
    h.advance(7_000)
    expect(h.storage.kept).toMatchObject({ highestEpoch: 3, controller: 'p3', eventSeq: 5 })
  })
})

describe('the outbox is bounded (R11)', () => {
  const wanted = (n: number) =>
    ({ n: 0, kind: n % 2 === 0 ? 'gpu_wanted' : 'gpu_used', task_id: 'a', attempt: 1, idle_ms: n }) as const

  it('keeps the latest of obsolete events, and all starts and ends', () => {
    const outbox = new Outbox([])
    outbox.add({ n: 0, kind: 'started', task_id: 'a', attempt: 1, wants_gpu: false })
    outbox.add({
      n: 0,
      kind: 'residency',
      task_id: 'a',
      attempt: 1,
      residency: 'swapped_out',
      generation: 2,
      because: null,
    })
    outbox.add({ n: 0, kind: 'reserve_breached', task_id: 'a', attempt: 1, gpu: 0, free_mib: 1 })
    outbox.add({ n: 0, kind: 'reserve_breached', task_id: 'a', attempt: 1, gpu: 1, free_mib: 1 })
    outbox.add({
      n: 0,
      kind: 'finished',
      task_id: 'b',
      attempt: 1,
      outcome: 'completed',
      exit_code: 0,
      detail: null,
    })
    outbox.add({ n: 0, kind: 'allocation_wanted', task_id: 'a', attempt: 1, mib: 7 })
    const live = outbox.entries()
    for (let n = 0; n < 10 * COMPACT_FROM_ENTRIES; n++) {
      outbox.add(wanted(n))
      expect(live.length).toBeLessThan(COMPACT_FROM_ENTRIES)
    }
    const last = 10 * COMPACT_FROM_ENTRIES - 1
    const kept = outbox.entries().filter((entry) => entry.n <= 6 || entry.n === last + 7)
    expect(kept.map((entry) => entry.kind)).toEqual([
      'started',
      'residency',
      'reserve_breached',
      'reserve_breached',
      'finished',
      'allocation_wanted',
      'gpu_used',
    ])
    expect([outbox.finishedCount, outbox.hasFinished('b', 1), outbox.hasFinished('a', 1)]).toEqual([
      1,
      true,
      false,
    ])
    outbox.acknowledge(5)
    expect([outbox.finishedCount, outbox.finished()]).toEqual([0, []])
    expect(outbox.entries()).toBe(live)
  })

  it('keeps all events that nothing makes obsolete', () => {
    const outbox = new Outbox([])
    const count = 3 * COMPACT_FROM_ENTRIES
    for (let n = 0; n < count; n++)
      outbox.add({ n: 0, kind: 'started', task_id: `task-${n}`, attempt: 1, wants_gpu: false })
    expect(outbox.entries().map((entry) => entry.n)).toEqual(Array.from({ length: count }, (_, i) => i + 1))
  })
})

describe('the storage of a simulated server', () => {
  it('keeps the latest saved state', () => {
    const storage = createMemoryStorage()
    expect(storage.load()).toMatchObject({ bootCounter: 0, highestEpoch: 0, outbox: [] })
    const state = {
      bootCounter: 4,
      highestEpoch: 2,
      attempts: new Map([['a', 3]]),
      burned: new Map(),
      living: new Map(),
      outbox: [],
    }
    storage.save(state, [])
    expect(storage.load()).toEqual(state)
  })
})
