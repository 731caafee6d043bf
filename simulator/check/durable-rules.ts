/**
 * Acknowledged tasks and the configuration survive every death of the controller. In a world without faults
 * there is nothing to check.
 */
import { CONFIG_RULES } from '../../controller/model/config.ts'
import type { ConfigFields } from '../../controller/model/config.ts'
import type { AlwaysRule, RuleContext } from './always-rule.ts'

/**
 * `acknowledged_never_lost`: a task whose submission was acknowledged is known to every later controller
 * until its end is durable.
 */
export function acknowledgedNeverLost({ observed: { faults }, report }: RuleContext): AlwaysRule {
  if (faults === null) return {}
  const look = (): void => {
    for (const taskId of faults.acknowledged) {
      if (!faults.hasOpenTask(taskId))
        report('its submission was acknowledged, and the controller does not know it', { taskId })
    }
  }
  faults.onControllerBegun(look)
  return { finish: look }
}

/** `configuration_kept`: a controller that begins has the configuration that was last made durable. */
export function configurationKept({ observed: { faults }, shadow, report }: RuleContext): AlwaysRule {
  if (faults === null) return {}
  const look = (): void => {
    const config = faults.config()
    for (const field of Object.keys(CONFIG_RULES) as (keyof ConfigFields)[]) {
      const [is, was] = [config[field], shadow.config[field]]
      if (is !== was)
        report(`a controller begins with ${field} ${String(is)}, made durable was ${String(was)}`)
    }
  }
  faults.onControllerBegun(look)
  return {}
}
