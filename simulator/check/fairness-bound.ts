/**
 * `fairness_bound`: enters every decision in the tracker of its GPUs, and compares the rounds that it closes.
 */
import type { StoredState } from '../../controller/ports/store.ts'
import type { AlwaysRule, RuleContext } from './always-rule.ts'
import { FairnessTracker } from './fairness-tracker.ts'
import type { ShadowTask } from './shadow.ts'
import { storedMarks } from './stored-marks.ts'
import { CLASSES, classOf, eligibleOn, swapDecisionOf } from './swap-decision.ts'
import type { SwapDecision, VictimClass } from './swap-decision.ts'

const CLASS_WORDS: Readonly<Record<VictimClass, string>> = {
  non_p0: 'non-P0',
  non_p0_warm: 'non-P0 kept-warm',
  p0: 'P0',
  p0_warm: 'P0 kept-warm',
}

export function fairnessBound(context: RuleContext): AlwaysRule {
  const { shadow } = context
  const books = new Map<string, FairnessTracker>()
  const bookOf = (nodeId: string, gpu: number, victimClass: VictimClass): FairnessTracker => {
    const key = `${nodeId}/${gpu}/${victimClass}`
    let book = books.get(key)
    if (book === undefined) {
      book = new FairnessTracker()
      books.set(key, book)
    }
    return book
  }
  const leave = ({ id, placement }: ShadowTask): void => {
    if (placement === null) return
    for (const gpu of placement.gpus)
      for (const victimClass of CLASSES) bookOf(placement.nodeId, gpu, victimClass).leave(id)
  }
  const begin = (stored: StoredState): void => {
    for (const { taskId, nodeId, gpu, victimClass, isSwapped } of storedMarks(stored))
      bookOf(nodeId, gpu, victimClass).join(taskId, isSwapped)
  }
  if (context.observed.start !== undefined) begin(context.observed.start)
  return {
    before(event) {
      const task = shadow.tasks.get(event.taskId ?? '')
      if (task !== undefined && (event.kind === 'task_finished' || event.kind === 'task_returned'))
        leave(task)
      const decision = swapDecisionOf(event, shadow)
      if (decision === null) return
      for (const { gpu } of decision.missing) {
        for (const victimClass of CLASSES)
          enter(context, decision, gpu, victimClass, bookOf(decision.node.id, gpu, victimClass))
      }
    },
    after({ kind, taskId }) {
      const task = shadow.tasks.get(taskId ?? '')
      const placement = task?.placement ?? null
      if (task === undefined || placement === null || (kind !== 'task_placed' && kind !== 'task_updated'))
        return
      // A new task, or one that has changed its class: new there.
      for (const gpu of placement.gpus) bookOf(placement.nodeId, gpu, classOf(task)).join(task.id)
    },
    setBack({ stored }) {
      books.clear()
      begin(stored)
    },
  }
}

function enter(
  { shadow, observed, report }: RuleContext,
  decision: SwapDecision,
  gpu: number,
  victimClass: VictimClass,
  book: FairnessTracker,
): void {
  const chosenBefore = new Set(
    decision.victims.filter((victim) => victim.gpu < gpu).map((victim) => victim.id),
  )
  const isEligible = (task: ShadowTask): boolean =>
    classOf(task) === victimClass && !chosenBefore.has(task.id)
  // With faults, the tasks that the controller considered eligible are unknown; its victims are known.
  const isDisturbed = observed.faults?.isDisturbed(decision.node.id) === true
  const available = isDisturbed
    ? []
    : eligibleOn(gpu, decision, shadow, observed)
        .filter(isEligible)
        .map((task) => task.id)
  const victims = decision.victims
    .filter((victim) => victim.gpu === gpu && victim.class === victimClass)
    .map((victim) => victim.id)
  const where = `${CLASS_WORDS[victimClass]} tasks of GPU ${gpu}`
  const closes = victims.some((id) => book.isSwappedThisRound(id))
  const isSaidToClose = decision.closedRounds.some(
    (closed) => closed.gpu === gpu && closed.class === victimClass,
  )
  const nodeId = decision.node.id
  if (closes !== isSaidToClose)
    report(
      `the round of the ${where} is ` +
        (closes ? 'closed but not reported' : 'reported as closed, but is open'),
      { nodeId },
    )
  const breach = book.decide({ victims, available: new Set(isDisturbed ? victims : available) })
  if (breach === null) return
  const { ids, difference, bound } = breach
  report(`swap-outs of ${ids.join(' and ')}, ${where}, differ by ${difference} where ${bound} is the bound`, {
    nodeId,
  })
}
