/** The life of a task: its reports, its swaps, the end of the lease (R1, R4, R8, R12). */
import type { Rule } from './rule.ts'
import type { Examiner } from './examiner.ts'
import { ended, hasFinished, running, said, SOON_MS, start, newTask, stop, swap } from './orders.ts'

/** Time after the end of a lease for the server to act and to be heard again. */
const GRACE_MS = 5_000

export const LIFE_RULES: readonly Rule[] = [
  {
    rule: 'R1',
    claim: 'what is not acknowledged is resent, oldest first, and stands in the snapshots',
    async examine(e) {
      const task = await running(e)
      if (typeof task === 'string') return task
      e.answers.events = false
      await stop(e, task.taskId, 1)
      const count = (): number =>
        e.heard.filter((event) => event.kind === 'finished' && event.task_id === task.taskId).length
      const isResent = await e.until(() => count() >= 3, 2 * SOON_MS)
      const isListed = await e.until(
        () => e.snapshot?.body.finished_unacked.some((ref) => ref.task_id === task.taskId) === true,
        3 * e.settings.heartbeat_ms,
      )
      e.answers.events = true
      if (!isResent)
        return `an end that was not acknowledged came ${count()} times in ${(2 * SOON_MS) / 1000} s`
      if (!isListed) return 'an end that was not acknowledged is missing from its snapshots'
      return null
    },
  },
  {
    rule: 'R8',
    claim: 'what is acknowledged is sent no more',
    async examine(e) {
      const task = await running(e)
      if (typeof task === 'string') return task
      const failure = await ended(e, task.taskId)
      if (failure !== null) return failure
      await e.pass(2 * e.settings.heartbeat_ms)
      const before = e.heard.length
      await e.pass(5 * e.settings.heartbeat_ms)
      const again = e.heard.slice(before).filter((event) => event.task_id === task.taskId).length
      return again === 0 ? null : `an acknowledged end came ${again} times more`
    },
  },
  {
    rule: 'R12',
    claim: 'a noswap task is not swapped out',
    async examine(e) {
      const task = await running(e, { noswap: 1 })
      if (typeof task === 'string') return task
      const result = await swap(e, 'swap_out', task.taskId, 1, 1)
      const failure = await ended(e, task.taskId)
      if (failure !== null) return failure
      return result?.outcome === 'refused' && result.reason === 'noswap'
        ? null
        : `the swap-out was answered ${said(result)}`
    },
  },
  {
    rule: 'R12',
    claim: 'a swap for another residency generation is refused',
    async examine(e) {
      const task = await running(e)
      if (typeof task === 'string') return task
      const result = await swap(e, 'swap_out', task.taskId, 1, 7)
      const failure = await ended(e, task.taskId)
      if (failure !== null) return failure
      return result?.outcome === 'refused' && result.reason === 'stale_generation'
        ? null
        : `it was answered ${said(result)}`
    },
  },
  {
    rule: 'R12',
    claim: 'an idle task leaves VRAM and returns, each reported with its generation',
    examine: outAndIn,
  },
  {
    rule: 'R3',
    claim: 'no start without a run lease',
    async examine(e) {
      e.answers.heartbeat = false
      await e.pass(e.settings.run_lease_ms + GRACE_MS)
      const result = await start(e, newTask(e), 1)
      e.answers.heartbeat = true
      await leaseAgain(e)
      return result?.outcome === 'refused' && result.reason === 'no_lease'
        ? null
        : `a start after the lease was answered ${said(result)}`
    },
  },
  {
    rule: 'R4',
    claim:
      'when two leases have passed without a word, tasks that may be requeued have ended, and ' +
      'those that wait have not',
    async examine(e) {
      const [ending, waiting] = [
        await running(e, { on_node_loss: 'requeue' }),
        await running(e, { on_node_loss: 'wait' }),
      ]
      if (typeof ending === 'string') return ending
      if (typeof waiting === 'string') return waiting
      // Acknowledged: the policy applies only then.
      await e.pass(2 * e.settings.heartbeat_ms)
      e.answers = { hello: false, heartbeat: false, events: false }
      await e.pass(2 * e.settings.run_lease_ms + GRACE_MS)
      e.answers = { hello: true, heartbeat: true, events: true }
      await leaseAgain(e)
      const hasEnded = await e.until(() => hasFinished(e, ending.taskId, 1), SOON_MS)
      const lives = e.snapshot?.body.tasks.some((task) => task.task_id === waiting.taskId) === true
      const failure = await ended(e, waiting.taskId)
      if (!hasEnded) {
        await stop(e, ending.taskId, 1)
        return 'a task with policy requeue outlived two leases'
      }
      return lives ? failure : 'a task with policy wait is gone'
    },
  },
  {
    rule: 'R4',
    claim: 'a stop list ends what the controller has given up',
    async examine(e) {
      const task = await running(e)
      if (typeof task === 'string') return task
      e.stop = [{ task_id: task.taskId, attempt: 1 }]
      const isOver = await e.until(() => hasFinished(e, task.taskId, 1), SOON_MS)
      e.stop = []
      return isOver ? null : `it lived on for ${SOON_MS / 1000} s`
    },
  },
]

async function outAndIn(e: Examiner): ReturnType<Rule['examine']> {
  const task = await running(e)
  if (typeof task === 'string') return task
  const residencies = (): string[] =>
    e
      .eventsOf(task.taskId, 1)
      .flatMap((event) => (event.kind === 'residency' ? [`${event.residency} ${event.generation}`] : []))
  const out = await swap(e, 'swap_out', task.taskId, 1, 1)
  if (out?.outcome !== 'accepted') {
    const failure = await ended(e, task.taskId)
    return failure ?? { notTested: `the swap-out of an idle lease was answered ${said(out)}` }
  }
  const isOut = await e.until(() => residencies().length === 1, SOON_MS)
  const again = await swap(e, 'swap_out', task.taskId, 1, 1)
  const back = await swap(e, 'swap_in', task.taskId, 1, 2)
  const isBack = await e.until(() => residencies().length === 2, SOON_MS)
  const failure = await ended(e, task.taskId)
  if (failure !== null) return failure
  if (!isOut) return `a swap-out that was accepted was not reported within ${SOON_MS / 1000} s`
  // The repeated order is a duplicate, or stale by then; it must not move anything.
  if (back?.outcome !== 'accepted')
    return `the swap-in was answered ${said(back)}, after a duplicate swap-out was answered ${said(again)}`
  const reported = residencies().join(', ')
  return isBack && reported === 'swapped_out 2, resident 3' ? null : `reported was: ${reported || 'nothing'}`
}

async function leaseAgain(e: Examiner): Promise<void> {
  const before = e.heartbeats + e.hellos
  await e.until(() => e.heartbeats + e.hellos >= before + 2, SOON_MS)
}
