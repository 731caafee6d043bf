/**
 * The controller's side of the protocol for one GPU server over a real broker: it sends welcomes, leases,
 * acknowledgements, and the commands of a test.
 */
import type { ControllerBody, Envelope, NodeBody } from '../../protocol/envelope.ts'
import type { Command, CommandResult, Hello, LogChunk, NodeEvent } from '../../protocol/messages.ts'
import { everyNode, nodeSubject } from '../../protocol/subjects.ts'
import { PROTOCOL_VERSION } from '../../protocol/limits.ts'
import { connectNatsBus } from '../../controller/adapters/nats-bus.ts'
import type { NatsBus } from '../../controller/adapters/nats-bus.ts'
import { until } from './live-cluster.ts'

type Body<B> = B extends Command ? Omit<B, 'valid_until_mono' | 'node_boot'> : never

export class OneNodeController {
  readonly bus: NatsBus
  /** The first of each boot of the server, which repeats it until it is answered. */
  readonly hellos: Hello[] = []
  readonly #boots = new Set<string>()
  readonly events: NodeEvent[] = []
  #isTalking = true
  /** Answers that wait until it responds again. */
  #held: (() => void)[] = []
  runLeaseMs = 60_000
  #last: Envelope | null = null
  #seq = 0

  constructor(url: string) {
    const quiet = { onState: () => {}, onBadMessage: () => {} }
    this.bus = connectNatsBus({
      urls: [url],
      name: 'controller',
      auth: { kind: 'none' },
      tls: null,
      ...quiet,
    })
    for (const verb of ['hello', 'heartbeat', 'event'] as const) {
      this.bus.subscribe(everyNode(verb), (message, _subject, reply) => {
        const answer = this.#answerTo(message)
        if (answer === null) return
        if (this.#isTalking) reply(this.#envelope(answer))
        else this.#held.push(() => reply(this.#envelope(answer)))
      })
    }
  }

  /** False: nothing is answered from now on; true: waiting messages are answered at once. */
  set isTalking(isTalking: boolean) {
    this.#isTalking = isTalking
    if (isTalking) for (const answer of this.#held.splice(0)) answer()
  }

  /** As of the latest snapshot. */
  task(taskId: string): Hello['tasks'][number] | undefined {
    const body = this.#last?.body
    return body?.op === 'hello' || body?.op === 'heartbeat'
      ? body.tasks.find(({ task_id }) => task_id === taskId)
      : undefined
  }

  /** @param boot 1 for the first start of the server */
  async hello(boot: number): Promise<Hello> {
    await until(`the hello of start ${boot}`, () => this.hellos.length >= boot)
    return this.hellos[boot - 1] as Hello
  }

  async event(
    taskId: string,
    kind: NodeEvent['kind'],
    isIt: (event: NodeEvent) => boolean = () => true,
  ): Promise<NodeEvent> {
    const find = () =>
      this.events.find((event) => event.task_id === taskId && event.kind === kind && isIt(event))
    await until(`${kind} of ${taskId}`, () => find() !== undefined)
    return find() as NodeEvent
  }

  async command(body: Body<Command>): Promise<CommandResult> {
    const last = this.#last
    if (last === null) throw new Error('the server has not spoken yet')
    const command = { ...body, valid_until_mono: last.sent_mono + 60_000, node_boot: last.boot } as Command
    const answer = await this.#ask(command)
    if (answer.op !== 'result') throw new Error(`answered with ${answer.op}`)
    return answer
  }

  start(
    taskId: string,
    command: readonly string[] | null,
    fields: {
      readonly onNodeLoss?: 'wait' | 'fail'
      readonly vramMib?: number
      readonly image?: string
    } = {},
  ) {
    const { onNodeLoss = 'wait', vramMib = 1_000, image } = fields
    const shape = {
      gpus: [0],
      vram_mib: vramMib,
      gpu_mode: 'shared',
      noswap: 0,
      priority: 2,
      on_node_loss: onNodeLoss,
      ...(image === undefined ? {} : { image }),
    } as const
    return this.command({ op: 'start', task_id: taskId, attempt: 1, command, ...shape })
  }

  swap(op: 'swap_out' | 'swap_in', taskId: string, generation: number): Promise<CommandResult> {
    return this.command({ op, task_id: taskId, attempt: 1, generation, force_active: true })
  }

  stop(taskId: string): Promise<CommandResult> {
    return this.command({ op: 'stop', task_id: taskId, attempt: 1, reason: 'test' })
  }

  async readLog(taskId: string, attempt = 1): Promise<LogChunk | string> {
    const answer = await this.#ask({
      op: 'read_log',
      task_id: taskId,
      attempt,
      stream: 'stdout',
      offset: 0,
      max_bytes: 1_000,
    })
    if (answer.op === 'log') return answer
    return answer.op === 'refused' ? answer.reason : answer.op
  }

  #ask(body: ControllerBody): Promise<NodeBody> {
    const nodeId = this.hellos.at(-1)?.node_id ?? ''
    return new Promise((resolve, reject) => {
      this.bus.request(nodeSubject(nodeId, 'command'), this.#envelope(body), 10_000, (outcome) => {
        if (outcome.answered) resolve(outcome.answer.body as NodeBody)
        else reject(new Error(`${body.op}: ${outcome.why}`))
      })
    })
  }

  #answerTo(message: Envelope): ControllerBody | null {
    const { body } = message
    const settings = { heartbeat_ms: 200, run_lease_ms: this.runLeaseMs, safety_reserve_mib: 0 }
    if (body.op === 'events') {
      if (this.#isTalking) this.events.push(...body.entries)
      return { op: 'events_ack', up_to: body.entries.at(-1)?.n ?? 0 }
    }
    if (body.op !== 'hello' && body.op !== 'heartbeat') return null
    this.#last = message
    if (body.op === 'hello' && !this.#boots.has(message.boot.random)) {
      this.#boots.add(message.boot.random)
      this.hellos.push(body)
    }
    return { op: body.op === 'hello' ? 'welcome' : 'lease', settings, stop: [] }
  }

  #envelope(body: ControllerBody): Envelope {
    const seq = ++this.#seq
    return {
      v: PROTOCOL_VERSION,
      id: `c${seq}`,
      sent_mono: seq,
      boot: { counter: 1, random: 'test' },
      seq,
      epoch: 1,
      body,
    }
  }
}
