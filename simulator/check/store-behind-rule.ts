/**
 * `store_behind_noticed` (safety section 2). A controller raises STORE_BEHIND for a node that has heard of
 * more than the store has. It places nothing while most nodes are ahead; in recovery, until each known node
 * was in contact or an operator ends it; and after a start, until the nodes that were up were in contact, for
 * at most 15 s.
 */
import type { Event } from '../../controller/model/event.ts'
import type { DurationMs, Instant } from '../../protocol/units.ts'
import type { AlwaysRule, RuleContext } from './always-rule.ts'

const START_WAIT_MS: DurationMs = 15_000
/** After this, a commit is durable or its controller has ended. */
const DURABLE_WITHIN_MS: DurationMs = 90_000
const HEARTBEATS = 2

export function storeBehindNoticed({ witnesses, shadow, observed, report }: RuleContext): AlwaysRule {
  const { faults } = observed
  if (faults === null || witnesses === null) return {}
  const known = new Set(observed.start?.nodes.map(({ id }) => id))
  /** Nodes that were up in the earlier state of the store, as its first controller reads it. */
  let awaited: readonly string[] = []
  let isFirst = false
  let isRecovering = false
  /** By node: since when it has been ahead without an alarm. */
  const warnings = new Map<string, Instant>()
  const alarmed = new Set<string>()
  const lateAfterMs = (): DurationMs => HEARTBEATS * shadow.config.heartbeat_seconds * 1000

  faults.onControllerBegun(() => {
    awaited = isFirst ? [...known].filter((nodeId) => !shadow.silentNodes.has(nodeId)) : []
    isFirst = false
    warnings.clear()
    alarmed.clear()
  })
  witnesses.listen(({ nodeId, isAhead }) => {
    if (!isAhead) warnings.delete(nodeId)
    else if (faults.isControllerContested()) return
    else if (!alarmed.has(nodeId) && !warnings.has(nodeId)) warnings.set(nodeId, observed.now())
  })
  const alarm = ({ nodeId, at, data }: Event): void => {
    if (nodeId === null) return
    if (data['is_behind'] === false) return void alarmed.delete(nodeId)
    const lateMs = at - (warnings.get(nodeId) ?? at) - lateAfterMs()
    if (lateMs > 0)
      report(`STORE_BEHIND is raised ${lateMs} ms later than two heartbeats after the node reported it`, {
        nodeId,
      })
    warnings.delete(nodeId)
    alarmed.add(nodeId)
  }
  const placed = ({ at, taskId, nodeId }: Event): void => {
    const tell = (detail: string): void =>
      report(`it is placed ${detail}`, {
        ...(taskId === null ? {} : { taskId }),
        ...(nodeId === null ? {} : { nodeId }),
      })
    const since = witnesses.mostAreAheadSince
    if (since !== null && at > since) tell('although most nodes have heard of more than the store has')
    if (isRecovering) tell('in recovery')
    const missing = awaited.filter((id) => known.has(id) && !witnesses.hasSpoken(id))
    if (missing.length > 0 && at < faults.controller().startedAt + START_WAIT_MS)
      tell(`before ${missing.join(', ')} was in contact since the start`)
  }
  const recovery = ({ data }: Event): void => {
    isRecovering = data['is_on'] === true
    if (isRecovering || data['by'] !== null) return
    const missing = [...known].filter((id) => !witnesses.hasSpoken(id))
    if (missing.length > 0) report(`the recovery ends by itself before ${missing.join(', ')} was in contact`)
  }
  return {
    before(event) {
      if (event.kind === 'node_registered' && event.nodeId !== null) known.add(event.nodeId)
      else if (event.kind === 'node_forgotten' && event.nodeId !== null) known.delete(event.nodeId)
      else if (event.kind === 'store_behind') alarm(event)
      else if (event.kind === 'recovery') recovery(event)
      else if (event.kind === 'task_placed' && event.data['when'] !== 'reported') placed(event)
    },
    afterEveryStep() {
      if (warnings.size === 0 || !faults.isControllerUp()) return
      for (const [nodeId, since] of warnings) {
        if (observed.now() <= since + lateAfterMs() + DURABLE_WITHIN_MS) continue
        report('it has heard of more than the store has, and no STORE_BEHIND is raised', { nodeId })
        warnings.set(nodeId, Infinity)
      }
    },
    setBack({ stored }) {
      known.clear()
      for (const { id } of stored.nodes) known.add(id)
      isRecovering = stored.recovery !== null
      isFirst = true
      warnings.clear()
    },
  }
}
