/**
 * `epochs_unique` (safety section 2, R9): each controller takes an epoch above those in its store; after a
 * restore or an accepted loss, one that no controller ever had; and no server obeys two processes of one
 * epoch.
 */
import type { AlwaysRule, RuleContext } from './always-rule.ts'

interface Mark {
  readonly epoch: number
  readonly process: string
}

export function epochsUnique({ witnesses, observed, report }: RuleContext): AlwaysRule {
  const { faults } = observed
  if (faults === null || witnesses === null) return {}
  /** Highest epoch of any controller, and highest in the store. */
  let [highest, stored] = [0, 0]
  let isAfterLoss = false
  /** By node: the processes that it named for each epoch. */
  const heard = new Map<string, Map<number, string>>()
  faults.onControllerBegun(() => {
    const { epoch } = faults.controller()
    if (epoch <= stored) report(`a controller begins with epoch ${epoch}, the store holds ${stored}`)
    else if (isAfterLoss && epoch <= highest)
      report(`a controller begins with epoch ${epoch} after a loss, and epoch ${highest} was used`)
    isAfterLoss = false
    stored = epoch
    highest = Math.max(highest, epoch)
  })
  const obeys = (nodeId: string, { epoch, process }: Mark): void => {
    const marks = heard.get(nodeId) ?? new Map<number, string>()
    const before = marks.get(epoch)
    if (before !== undefined && before !== process && !faults.mayForget)
      report(`it has obeyed two controllers of epoch ${epoch}`, { nodeId })
    heard.set(nodeId, marks.set(epoch, process))
  }
  witnesses.listen(({ nodeId, message: { epoch, controller } }) => {
    if (controller !== undefined) obeys(nodeId, { epoch, process: controller })
  })
  return {
    setBack({ fault, stored: { epochs } }) {
      stored = epochs.at(-1)?.epoch ?? 0
      isAfterLoss = fault.loss !== 'silent'
    },
  }
}
