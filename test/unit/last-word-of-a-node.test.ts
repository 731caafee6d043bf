/**
 * What a node reports about attempts that have ended (R6, R7), and how commands to it queue up (R11). The
 * node sends exactly the messages that a test gives it.
 */
import type { Bus } from '../../controller/ports/bus.ts'
import { beforeEach, describe, expect, it } from 'vitest'
import { createMemoryStore } from '../../controller/adapters/memory-store.ts'
import type { Controller } from '../../controller/controller.ts'
import { createController } from '../../controller/controller.ts'
import { SWAP_BACK_OFF_MS } from '../../controller/engine/inputs/nodes/node-events.ts'
import type { TaskRequest } from '../../protocol/task.ts'
import { TASK_DEFAULTS } from '../../protocol/limits.ts'
import { MAX_PENDING_TASKS } from '../../controller/engine/inputs/commands/task-commands.ts'
import type { Envelope, NodeBody } from '../../protocol/envelope.ts'
import type { Command, CommandResult, Heartbeat, NodeEvent } from '../../protocol/messages.ts'
import { nodeIdFromName } from '../../protocol/node-id.ts'
import { nodeSubject } from '../../protocol/subjects.ts'
import { PROTOCOL_VERSION } from '../../protocol/limits.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'
import { plainBus } from '../support/plain-bus.ts'
import { VirtualClock } from '../../simulator/kernel/virtual-clock.ts'

const GPUS = [{ index: 0, model: 'm', physical_mib: 4000, foreign_mib: 0 }]
const RUNS = {
  residency: 'resident',
  generation: 0,
  gpus: [0],
  vram_mib: 1000,
  wants_gpu: true,
  idle_ms: 0,
} as const
const FIRST = { task_id: 't', attempt: 1 }

/** Has no logic of its own. A command without a configured answer stays unanswered. */
class ToldNode {
  readonly id = nodeIdFromName('told')
  readonly heard: string[] = []
  answers: Partial<Record<Command['op'], CommandResult['outcome']>> = {}
  readonly #bus: Bus
  readonly #open: (() => void)[] = []
  #seq = 0

  constructor(bus: Bus) {
    this.#bus = bus
    bus.subscribe(nodeSubject(this.id, 'command'), ({ body }, _subject, reply) => {
      if (!('valid_until_mono' in body)) return
      const { op, task_id, attempt } = body
      this.heard.push(`${op} ${attempt}`)
      const answer = (outcome: CommandResult['outcome']): void =>
        reply(
          this.#seal({
            op: 'result',
            task_id,
            attempt,
            outcome,
            reason: null,
            residency: 'none',
            generation: 0,
          }),
        )
      const told = this.answers[op]
      if (told === undefined) this.#open.push(() => answer('accepted'))
      else answer(told)
    })
  }

  /** Answers the waiting commands. */
  obey(): void {
    for (const answer of this.#open.splice(0)) answer()
  }

  hello(): void {
    const identity = { node_id: this.id, name: 'told', address: 'a', host_swap_mib: 4000 }
    const abilities = { signals_wanted: true, device: 'simulated', allow_exec: true } as const
    this.#say('hello', {
      op: 'hello',
      ...identity,
      ...abilities,
      gpus: GPUS,
      tasks: [],
      finished_unacked: [],
    })
  }

  snapshot(holds: Partial<Pick<Heartbeat, 'tasks' | 'finished_unacked'>>): void {
    this.#say('heartbeat', {
      op: 'heartbeat',
      node_id: this.id,
      gpus: GPUS,
      tasks: [],
      finished_unacked: [],
      ...holds,
    })
  }

  tell(event: NodeEvent): void {
    this.#say('event', { op: 'events', node_id: this.id, entries: [event] })
  }

  #say(verb: 'hello' | 'heartbeat' | 'event', body: NodeBody): void {
    this.#bus.request(nodeSubject(this.id, verb), this.#seal(body), 1000, () => {})
  }

  #seal(body: NodeBody): Envelope {
    const seq = ++this.#seq
    return {
      v: PROTOCOL_VERSION,
      id: `${this.id}.${seq}`,
      sent_mono: seq,
      boot: { counter: 1, random: 'r' },
      seq,
      epoch: 1,
      body,
    }
  }
}

let controller: Controller
let node: ToldNode
let settle: () => void
let advance: (ms: number) => void

beforeEach(async () => {
  const clock = new VirtualClock(1_000_000)
  const bus = plainBus(clock)
  const edges = { clock, random: createSeededRandom(1), bus, store: createMemoryStore() }
  controller = createController(edges, {
    initialConfig: { safety_reserve_mib: 0 },
    areHeartbeatsElided: true,
  })
  await controller.start()
  node = new ToldNode(bus)
  settle = () => clock.run(clock.now(), () => false)
  advance = (ms) => clock.run(clock.now() + ms, () => false)
  node.hello()
  settle()
})

function submit(fields: Partial<TaskRequest> = {}): void {
  const shape = {
    id: 't',
    name: null,
    vramMib: 1000,
    groups: [],
    labels: {},
    owner: null,
    command: ['x'],
    maxRuntimeSeconds: null,
  }
  controller.commands.submitTask({ ...TASK_DEFAULTS, ...shape, ...fields }, () => {})
  settle()
}

function runs(fields: Partial<TaskRequest> = {}): void {
  node.answers = { start: 'accepted' }
  submit(fields)
  node.tell({ n: 1, ...FIRST, kind: 'started', wants_gpu: true })
  settle()
  expect(stateOf('t')).toBe('running')
}

/** Ended: no longer among the open tasks. */
function stateOf(id: string): string {
  return controller.views.openTask(id)?.state ?? 'ended'
}

describe('an attempt that is missing in a later snapshot', () => {
  it('An attempt that is missing in a later snapshot is lost', () => {
    runs()
    node.snapshot({ tasks: [{ ...FIRST, ...RUNS }] })
    settle()
    expect(stateOf('t')).toBe('running')
    node.snapshot({})
    settle()
    expect(controller.views.counts()).toMatchObject({ running: 0, lost: 1 })
  })

  it('An attempt that is missing in a later snapshot starts again when its policy is requeue', () => {
    runs({ onNodeLoss: 'requeue' })
    node.snapshot({})
    settle()
    expect(node.heard).toEqual(['start 1'])
    // The delay before the first requeue of a short attempt.
    advance(10_000)
    expect(node.heard).toEqual(['start 1', 'start 2'])
  })

  it('An attempt whose end is not yet acknowledged is not lost, and ends with its own outcome', () => {
    runs()
    node.snapshot({ finished_unacked: [FIRST] })
    settle()
    expect(stateOf('t')).toBe('running')
    node.tell({ n: 2, ...FIRST, kind: 'finished', outcome: 'completed', exit_code: 0, detail: null })
    settle()
    expect(controller.views.counts()).toMatchObject({ running: 0, lost: 0, completed: 1 })
  })
})

describe('a swap whose failure is known from a snapshot, before the event that says why', () => {
  it('is not ordered again before the time in which swaps are not repeated is over', () => {
    runs()
    node.answers = { swap_in: 'accepted' }
    const isOut = { ...FIRST, ...RUNS, residency: 'swapped_out', wants_gpu: false } as const
    node.snapshot({ tasks: [{ ...isOut, generation: 2 }] })
    settle()
    controller.commands.swapInTask('t', 'alice', () => {})
    settle()
    expect(node.heard).toEqual(['start 1', 'swap_in 1'])
    node.snapshot({ tasks: [{ ...isOut, generation: 3 }] })
    settle()
    expect(controller.views.openTask('t')?.placement?.residency).toBe('swapped_out')
    expect(node.heard).toEqual(['start 1', 'swap_in 1'])
    advance(SWAP_BACK_OFF_MS)
    expect(node.heard).toEqual(['start 1', 'swap_in 1', 'swap_in 1'])
  })
})

describe('an attempt for which a node answers gone', () => {
  it('An attempt for which a node answers gone has ended', () => {
    runs()
    node.answers = { stop: 'gone' }
    controller.commands.cancelTask('t', 'alice', () => {})
    settle()
    expect(controller.views.counts()).toMatchObject({ running: 0, cancelled: 1 })
  })
})

describe('limits of commands and tasks', () => {
  it('One command of a task is in flight at a time', () => {
    submit()
    controller.commands.cancelTask('t', 'alice', () => {})
    settle()
    expect(node.heard).toEqual(['start 1'])
    node.obey()
    settle()
    expect(node.heard).toEqual(['start 1', 'stop 1'])
  })

  it('The number of pending tasks is limited', () => {
    const { cluster } = controller
    const answers: unknown[] = []
    const ask = (id: string): void => {
      const shape = {
        id,
        name: null,
        vramMib: 5000,
        groups: [],
        labels: {},
        owner: null,
        command: ['x'],
        maxRuntimeSeconds: null,
      }
      controller.commands.submitTask({ ...TASK_DEFAULTS, ...shape }, (answer) => answers.push(answer))
      settle()
    }
    Object.assign(cluster, { pendingCount: cluster.pendingCount + MAX_PENDING_TASKS - 1 })
    ask('last')
    ask('too-many')
    expect(answers).toMatchObject([
      { ok: true },
      { ok: false, refusal: { code: 'too_many_pending', limit: MAX_PENDING_TASKS, owner: null } },
    ])
  })
})
