/**
 * The surroundings of the two production halves of a simulation, alone: work is drawn, simulated GPUs run it,
 * with as many messages and journal lines as in a complete run. There are no decisions and no state: tasks go
 * to one GPU after the other, and each receiver answers its message. The margin to a floor is the budget of
 * the controller and the servers.
 */
import type { Bus } from '../../controller/ports/bus.ts'
import type { EventData, EventKind } from '../../controller/model/event.ts'
import type { Random } from '../../controller/ports/random.ts'
import { RANK_ARRIVAL, RANK_MESSAGE } from '../../controller/ports/clock.ts'
import type { Body, Envelope } from '../../protocol/envelope.ts'
import type { NodeEvent } from '../../protocol/messages.ts'
import type { StartCommand } from '../../protocol/start-command.ts'
import { everyNode, nodeSubject } from '../../protocol/subjects.ts'
import { PROTOCOL_VERSION } from '../../protocol/limits.ts'
import type { AttemptStart } from '../../gpu-server/core/attempt-start.ts'
import { SimulatedDevice } from '../../simulator/fleet/simulated-device.ts'
import { OpenWorkload } from '../../simulator/fleet/open-workload.ts'
import { Journal } from '../../simulator/results/journal.ts'
import type { ArrivalSource } from '../../simulator/scenario/arrivals.ts'
import { idOfNode } from '../../simulator/scenario/node-id.ts'
import type { Scenario, ScenarioNode, SimTask } from '../../simulator/scenario/scenario.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'
import { plainBus } from '../support/plain-bus.ts'
import { VirtualClock } from '../../simulator/kernel/virtual-clock.ts'

const ANSWER_WITHIN_MS = 2_000
const BOOT = { counter: 1, random: 'bench' }

/** @returns the number of tasks that ran to their end. */
export function runSurroundings(scenario: Scenario, arrivals: (random: Random) => ArrivalSource): number {
  const stage = new Stage(scenario)
  const source = arrivals(createSeededRandom(scenario.seed))
  let next = source.next()
  const arrive = (): void => {
    if (next === null) return
    stage.submit(next)
    next = source.next()
    if (next !== null) timer.set(scenario.clock.startMs + next.at)
  }
  const timer = stage.clock.timer(arrive, undefined, RANK_ARRIVAL)
  if (next !== null) timer.set(scenario.clock.startMs + next.at)
  stage.clock.run(Infinity, () => false)
  return stage.ended
}

class Stage {
  readonly clock: VirtualClock
  readonly bus: Bus
  readonly workload = new OpenWorkload()
  ended = 0
  readonly #journal = new Journal(null)
  readonly #servers: readonly Server[]
  #placed = 0
  #messages = 0
  #events = 0

  constructor({ clock, nodes }: Scenario) {
    this.clock = new VirtualClock(clock.startMs)
    this.bus = plainBus(this.clock)
    this.#servers = nodes.map((node) => new Server(this, node))
    this.bus.subscribe(everyNode('event'), ({ body }, _subject, reply) => {
      if (body.op === 'events') reply(this.seal({ op: 'events_ack', up_to: body.entries[0]?.n ?? 0 }))
    })
  }

  submit({ request, work, allocSteps }: SimTask): void {
    const { id, vramMib, gpuCount, priority, noswap } = request
    if (id === null || vramMib === null) throw new Error('the tasks of a bench have names and demands')
    const server = this.#servers[this.#placed % this.#servers.length] as Server
    const first = Math.floor(this.#placed / this.#servers.length)
    const gpus = Array.from({ length: gpuCount }, (_, k) => (first + k) % server.gpuCount)
    this.#placed += 1
    this.workload.add(id, work, allocSteps)
    this.log('task_submitted', id, null, {
      name: id,
      vram_mib: vramMib,
      gpu_count: gpuCount,
      priority,
      noswap,
    })
    this.log('task_placed', id, server.id, { attempt: 1, gpus, demand_mib: vramMib, when: 'now' })
    const start = {
      op: 'start',
      task_id: id,
      attempt: 1,
      valid_until_mono: ANSWER_WITHIN_MS,
      node_boot: BOOT,
      gpus,
      vram_mib: vramMib,
    } as const
    server.order({ ...start, gpu_mode: 'shared', noswap, priority, on_node_loss: 'wait', command: null })
  }

  seal<B extends Body>(body: B): Envelope<B> {
    const seq = ++this.#messages
    return {
      v: PROTOCOL_VERSION,
      id: `1.${seq}`,
      sent_mono: this.clock.now(),
      boot: BOOT,
      seq,
      epoch: 1,
      body,
    }
  }

  log(kind: EventKind, taskId: string, nodeId: string | null, data: EventData): void {
    const seq = ++this.#events
    this.#journal.record([
      { seq, at: this.clock.now(), kind, taskId, nodeId, causedBy: seq - 1, by: null, data },
    ])
  }
}

class Server {
  readonly id: string
  readonly gpuCount: number
  readonly #stage: Stage
  readonly #device: SimulatedDevice
  readonly #command: string
  readonly #event: string
  #entries = 0

  constructor(stage: Stage, node: ScenarioNode) {
    this.id = idOfNode(node)
    this.gpuCount = node.gpuCount
    this.#stage = stage
    this.#command = nodeSubject(this.id, 'command')
    this.#event = nodeSubject(this.id, 'event')
    this.#device = new SimulatedDevice(stage.clock, node, stage.workload)
    this.#device.observe({ exited: (taskId) => this.#exited(taskId), ...UNUSED })
    stage.bus.subscribe(this.#command, ({ body }, _subject, reply) => {
      if (body.op !== 'start') return
      this.#launch(body)
      const { task_id, attempt } = body
      reply(
        stage.seal({
          op: 'result',
          task_id,
          attempt,
          outcome: 'accepted',
          reason: null,
          residency: 'none',
          generation: 0,
        }),
      )
    })
  }

  order(start: StartCommand): void {
    this.#stage.bus.request(this.#command, this.#stage.seal(start), ANSWER_WITHIN_MS, HEARD)
  }

  #launch({ task_id: taskId, attempt, gpus, vram_mib: vramMib, noswap, priority }: StartCommand): void {
    const start: AttemptStart = {
      taskId,
      attempt,
      gpus,
      vramMib,
      gpuMode: 'shared',
      noswap,
      priority,
      onNodeLoss: 'wait',
      isLease: false,
    }
    const onUse = (wantsGpu: boolean, idleMs: number): void => {
      this.#tell({
        n: 0,
        kind: wantsGpu ? 'gpu_wanted' : 'gpu_used',
        task_id: taskId,
        attempt,
        idle_ms: idleMs,
      })
    }
    this.#device.launch({ start, command: null, env: {}, onUse }, () => {
      this.#tell({ n: 0, kind: 'started', task_id: taskId, attempt, wants_gpu: true })
      this.#stage.log('task_started', taskId, this.id, { attempt })
    })
  }

  #exited(taskId: string): void {
    this.#device.forget(taskId, 1)
    this.#stage.workload.forget(taskId)
    this.#stage.ended += 1
    this.#tell({
      n: 0,
      kind: 'finished',
      task_id: taskId,
      attempt: 1,
      outcome: 'completed',
      exit_code: 0,
      detail: null,
    })
    this.#stage.log('task_finished', taskId, this.id, {
      state: 'completed',
      attempt: 1,
      exit_code: 0,
      reason: null,
    })
  }

  /** At the end of the instant, like a server. */
  #tell(event: NodeEvent): void {
    const { bus, clock } = this.#stage
    const entry = { ...event, n: ++this.#entries }
    clock.soon(() => {
      bus.request(
        this.#event,
        this.#stage.seal({ op: 'events', node_id: this.id, entries: [entry] }),
        ANSWER_WITHIN_MS,
        HEARD,
      )
    }, RANK_MESSAGE)
  }
}

const HEARD = (): void => {}
const UNUSED = {
  gpuWanted: HEARD,
  gpuUsed: HEARD,
  allocationWanted: HEARD,
  freeMeasured: HEARD,
  restStays: () => false,
}
