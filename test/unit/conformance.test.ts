/** The conformance kit accepts our own server and detects each server that breaks a rule. */
import { describe, expect, it } from 'vitest'
import type { Bus, Handler, RequestOutcome } from '../../controller/ports/bus.ts'
import { ServerCore } from '../../gpu-server/core/server-core.ts'
import { createMemoryStorage } from '../../gpu-server/core/storage.ts'
import type { Body, Envelope } from '../../protocol/envelope.ts'
import { examineServer, RULES } from '../../simulator/experiment/conformance/conformance.ts'
import type { RuleReport } from '../../simulator/experiment/conformance/conformance.ts'
import { Examiner } from '../../simulator/experiment/conformance/examiner.ts'
import { CommandWorkload } from '../../simulator/fleet/command-work.ts'
import { SimulatedDevice } from '../../simulator/fleet/simulated-device.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'
import type { Feature } from '../../protocol/units.ts'
import { EchoChannels, type EchoFaults } from '../support/echo-channels.ts'
import { plainBus } from '../support/plain-bus.ts'
import { VirtualClock } from '../../simulator/kernel/virtual-clock.ts'
import { HOUR, idleFor, node } from '../support/world-builder.ts'

const NODE_ID = '00000000-0000-4000-8000-000000000001'
const SETTINGS = { heartbeat_ms: 1000, run_lease_ms: 8000, safety_reserve_mib: 0 }

/** How a faulty server changes the messages that it receives and sends. */
interface Tampering {
  readonly heard?: (message: Envelope) => Envelope
  readonly said?: (message: Envelope) => Envelope | null
  readonly answered?: (answer: Envelope) => Envelope
  readonly told?: (answer: Envelope) => Envelope
}

/** Every message passes through the fault; a message that is dropped is never answered. */
function tampered(bus: Bus, { heard = same, said = same, answered = same, told = same }: Tampering): Bus {
  return {
    publish: (subject, message) => bus.publish(subject, message),
    request(subject, message, timeoutMs, done: (outcome: RequestOutcome) => void) {
      const sent = said(message)
      if (sent === null) return
      bus.request(subject, sent, timeoutMs, (outcome) =>
        done(outcome.answered ? { answered: true, answer: told(outcome.answer) } : outcome),
      )
    },
    subscribe: (pattern, handler: Handler) =>
      bus.subscribe(pattern, (message, subject, reply) =>
        handler(heard(message), subject, (answer) => reply(answered(answer))),
      ),
    drain: () => bus.drain(),
  }
}

const same = (message: Envelope): Envelope => message
const change = (message: Envelope, fields: Partial<Body>): Envelope => ({
  ...message,
  body: { ...message.body, ...fields } as Body,
})

/** What the examined server can do. */
interface Able {
  readonly features?: readonly Feature[]
  readonly allowExec?: boolean
  readonly channels?: EchoFaults
}

const ABLE: Able = { features: ['image', 'prepare', 'channels'], allowExec: true, channels: {} }

/** @param stopTakesMs time that a task needs to handle SIGTERM: without end, or zero for a lease */
async function examined(
  tampering: Tampering = {},
  stopTakesMs = 1000 * HOUR,
  { features = [], allowExec = false, channels }: Able = {},
): Promise<readonly RuleReport[]> {
  const clock = new VirtualClock(1_000_000)
  const random = createSeededRandom('conformance')
  const bus = plainBus(clock, 'wire', 5)
  const server: ServerCore = new ServerCore({
    nodeId: NODE_ID,
    name: 'examined',
    address: '',
    hostSwapMib: 1000,
    signalsWanted: true,
    deviceKind: 'simulated',
    allowExec,
    features,
    channels:
      channels === undefined
        ? null
        : new EchoChannels(clock, (taskId) => server.attempts.has(taskId), channels),
    clock,
    random: random.stream('server'),
    bus: tampered(bus, tampering),
    device: new SimulatedDevice(
      clock,
      node({ name: 'examined' }),
      Object.assign(new CommandWorkload(idleFor(1000 * HOUR)), { stopTakesMs: () => stopTakesMs }),
    ),
    storage: createMemoryStorage(),
    areHeartbeatsElided: false,
  })
  server.start()
  const examiner = new Examiner({
    bus,
    clock,
    random: random.stream('examiner'),
    nodeId: NODE_ID,
    settings: SETTINGS,
    epoch: 1000,
  })
  let reports: readonly RuleReport[] | null = null
  void examineServer(examiner, () => {}).then((all) => (reports = all))
  while (reports === null) {
    // Promises are settled before time advances.
    await new Promise((resolve) => setImmediate(resolve))
    clock.step(Infinity)
  }
  server.stop()
  return reports
}

const broken = (reports: readonly RuleReport[]): string[] =>
  reports.filter(({ verdict }) => verdict === 'broken').map(({ claim }) => claim)

it('Our own server keeps every rule', async () => {
  for (const able of [ABLE, {}]) {
    const reports = await examined({}, undefined, able)
    expect(reports.map(({ claim }) => claim)).toEqual(RULES.map(({ claim }) => claim))
    const { features = [] } = able
    const notTested = RULES.filter(({ feature }) => feature !== undefined && !features.includes(feature))
    expect(
      reports.filter(({ verdict }) => verdict !== 'kept').map(({ claim, detail }) => [claim, detail]),
    ).toEqual(notTested.map(({ claim, feature }) => [claim, `the server has no feature ${feature}`]))
  }
})

describe('The kit detects a server that', () => {
  const bodyOf = (message: Envelope): Body => message.body
  const mutants: Readonly<Record<string, readonly [Tampering, claim: RegExp]>> = {
    'obeys an older controller': [{ heard: (m) => ({ ...m, epoch: 1000 }) }, /older controller/],
    'obeys a command for another boot': [
      {
        heard: (m) => {
          const body = bodyOf(m)
          return 'node_boot' in body && body.node_boot.random === 'another'
            ? { ...m, body: { ...body, node_boot: latestBoot } }
            : m
        },
        said: (m) => {
          latestBoot = m.boot
          return m
        },
      },
      /another boot/,
    ],
    'obeys an expired command': [
      { heard: (m) => ('valid_until_mono' in bodyOf(m) ? change(m, { valid_until_mono: 1e12 }) : m) },
      /past its time/,
    ],
    'accepts any amount of memory': [
      { heard: (m) => (bodyOf(m).op === 'start' ? change(m, { vram_mib: 1 }) : m) },
      /more memory than there is/,
    ],
    'starts duplicates again': [
      {
        answered: (a) =>
          bodyOf(a).op === 'result' ? change(a, { outcome: 'accepted', reason: null } as Partial<Body>) : a,
      },
      /duplicate start/,
    ],
    'does not resend': [{ said: onlyOnce() }, /resent/],
    'never stops resending': [
      { told: (a) => (bodyOf(a).op === 'events_ack' ? change(a, { up_to: 0 }) : a) },
      /sent no more/,
    ],
    'swaps noswap tasks': [
      { heard: (m) => (bodyOf(m).op === 'start' ? change(m, { noswap: 0 }) : m) },
      /noswap/,
    ],
    'obeys stale swaps': [
      { heard: (m) => (bodyOf(m).op === 'swap_out' ? change(m, { generation: 1 }) : m) },
      /another residency generation/,
    ],
    'ignores the end of the lease': [
      { heard: (m) => (bodyOf(m).op === 'start' ? change(m, { on_node_loss: 'wait' }) : m) },
      /two leases have passed/,
    ],
    'ignores stop lists': [
      { told: (a) => ('stop' in bodyOf(a) ? change(a, { stop: [] } as Partial<Body>) : a) },
      /stop list/,
    ],
    'never ends a stop with a grace': [
      { heard: (m) => ('grace_ms' in bodyOf(m) ? change(m, { grace_ms: HOUR }) : m) },
      /ends with its grace/,
    ],
    'lets a grace run out after a second stop': [
      {
        heard: (m) =>
          bodyOf(m).op === 'stop' && !('grace_ms' in bodyOf(m))
            ? change(m, { grace_ms: HOUR } as Partial<Body>)
            : m,
      },
      /in the middle of one/,
    ],
    'reports stopped tasks as failed': [
      {
        said: (m) => {
          const body = bodyOf(m)
          if (body.op !== 'events') return m
          const entries = body.entries.map((each) =>
            each.kind === 'finished' ? { ...each, outcome: 'failed' as const } : each,
          )
          return change(m, { entries } as Partial<Body>)
        },
      },
      /reported as stopped/,
    ],
    'does not repeat a refused hello': [
      {
        told: (a) =>
          bodyOf(a).op === 'refused'
            ? change(a, { op: 'lease', settings: SETTINGS, stop: [] } as Partial<Body>)
            : a,
      },
      /says hello again/,
    ],
    'keeps its boot after a state reset': [
      {
        told: (a) =>
          bodyOf(a).op === 'state_reset'
            ? change(a, { op: 'lease', settings: SETTINGS, stop: [] } as Partial<Body>)
            : a,
      },
      /restart above/,
    ],
  }
  let latestBoot = { counter: 0, random: '' }
  for (const [what, [tampering, claim]] of Object.entries(mutants)) {
    it(what, async () => {
      expect(broken(await examined(tampering)).some((each) => claim.test(each))).toBe(true)
    })
  }

  it.each<readonly [what: string, tampering: Tampering, claim: RegExp]>([
    ['lists no preparation', { said: withoutPreparing }, /listed once/],
    ['lists a preparation twice', { said: twicePrepared }, /listed once/],
    [
      'keeps a preparation for ever',
      { told: (a) => ('stop' in bodyOf(a) ? change(a, { stop: [] } as Partial<Body>) : a) },
      /stop list names it/,
    ],
    [
      'burns the attempt that it prepares',
      { heard: (m) => (bodyOf(m).op === 'start' ? change(m, { task_id: 'another' } as Partial<Body>) : m) },
      /burns no attempt/,
    ],
    [
      'prepares for an older controller',
      { heard: (m) => (bodyOf(m).op === 'prepare' ? { ...m, epoch: 1000 } : m) },
      /prepare nothing/,
    ],
  ])('%s', async (_, tampering, claim) => {
    expect(broken(await examined(tampering, undefined, ABLE)).some((each) => claim.test(each))).toBe(true)
  })

  it.each<readonly [what: string, faults: EchoFaults, claim: RegExp]>([
    ['writes repeated input twice', { isInputRepeated: true }, /gets its input once/],
    ['loses the errors of a command', { areErrorsLost: true }, /outputs and exit code/],
    ['forgets what it has sent', { areReadsSkipped: true }, /outputs and exit code/],
    ['connects to any port', { isPortOpen: true }, /no process of the task listens/],
    ['keeps channels of ended tasks', { isTaskOutlived: true }, /ends with its task/],
    ['reads channels that were never opened', { isAnythingRead: true }, /written or read unopened/],
  ])('%s', async (_, channels, claim) => {
    const reports = await examined({}, undefined, { ...ABLE, channels })
    expect(broken(reports).filter((each) => claim.test(each))).toHaveLength(1)
  })

  function withoutPreparing(message: Envelope): Envelope {
    return 'preparing' in message.body ? change(message, { preparing: [] } as Partial<Body>) : message
  }

  function twicePrepared(message: Envelope): Envelope {
    const { body } = message
    if (!('preparing' in body) || body.preparing === undefined) return message
    return change(message, { preparing: [...body.preparing, ...body.preparing] } as Partial<Body>)
  }

  /** Every entry of the outbox is sent in one message only. */
  function onlyOnce(): (message: Envelope) => Envelope | null {
    const sent = new Set<number>()
    return (message) => {
      const body = bodyOf(message)
      if (body.op !== 'events') return message
      const entries = body.entries.filter(({ n }) => !sent.has(n))
      for (const { n } of entries) sent.add(n)
      return entries.length === 0 ? null : change(message, { entries } as Partial<Body>)
    }
  }
})
