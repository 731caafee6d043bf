/**
 * A bus on which servers refuse starts for any possible reason: the command reaches the server in a form that
 * it must refuse, and its answer carries the drawn reason. The declared limit of a server can also be hidden
 * from the controller.
 */
import type { Bus } from '../../controller/ports/bus.ts'
import type { Envelope } from '../../protocol/envelope.ts'
import type { StartRefused } from '../../protocol/message-fields.ts'
import type { CommandResult, RefusalReason } from '../../protocol/messages.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'

/** All reasons to refuse a start. */
export const START_REFUSALS: readonly RefusalReason[] = [
  'stale_epoch',
  'other_boot',
  'expired',
  'no_lease',
  'old_attempt',
  'no_vram',
  'unknown_gpu',
  'no_host_memory',
  'node_full',
  'exec_not_allowed',
  'device_failed',
  'disk_failed',
]

const CAUSES: readonly StartRefused['cause'][] = ['host', 'task', 'passing']

/** A GPU that no server has. */
const NO_GPU = 15

export interface RefusalPlan {
  readonly seed: number
  /** Refused starts per 1000. */
  readonly permille: number
  /** Refusals per 1000 that name a cause. */
  readonly causePermille: number
  /** The controller does not receive the attempt limit of a server. */
  readonly areLimitsHidden: boolean
}

/** The refusals, in order. */
export type Refused = readonly [task: string, attempt: number, reason: RefusalReason]

export function refusingBus(bus: Bus, plan: RefusalPlan, refused: Refused[] = []): Bus {
  return {
    publish: (subject, message) => bus.publish(subject, message),
    drain: () => bus.drain(),
    subscribe: (pattern, handler) =>
      bus.subscribe(pattern, (message, subject, reply) =>
        handler(plan.areLimitsHidden ? withoutLimit(message) : message, subject, reply),
      ),
    request: (subject, message, timeoutMs, done) => {
      const { body } = message
      const drawn = body.op === 'start' ? drawnFor(plan, body.task_id, body.attempt) : null
      if (body.op !== 'start' || drawn === null) return bus.request(subject, message, timeoutMs, done)
      const unusable: Envelope = { ...message, body: { ...body, gpus: [NO_GPU] } }
      bus.request(subject, unusable, timeoutMs, (outcome) => {
        if (
          !outcome.answered ||
          outcome.answer.body.op !== 'result' ||
          outcome.answer.body.outcome !== 'refused'
        )
          return done(outcome)
        refused.push([body.task_id, body.attempt, drawn.reason])
        const answer: CommandResult = { ...outcome.answer.body, ...drawn }
        done({ answered: true, answer: { ...outcome.answer, body: answer } })
      })
    },
  }
}

function withoutLimit(message: Envelope): Envelope {
  if (message.body.op !== 'hello') return message
  const { max_attempts: _hidden, ...body } = message.body
  return { ...message, body }
}

function drawnFor(
  { seed, permille, causePermille }: RefusalPlan,
  taskId: string,
  attempt: number,
): (Pick<CommandResult, 'start_refused'> & { readonly reason: RefusalReason }) | null {
  const random = createSeededRandom(seed).stream(`${taskId}/${attempt}`)
  if (random() * 1000 >= permille) return null
  const reason = START_REFUSALS[Math.floor(random() * START_REFUSALS.length)] as RefusalReason
  if (random() * 1000 >= causePermille) return { reason }
  const cause = CAUSES[Math.floor(random() * CAUSES.length)] as StartRefused['cause']
  return { reason, start_refused: { cause, code: 'drawn' } }
}
