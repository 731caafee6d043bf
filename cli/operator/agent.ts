import { EXIT_OK, CommandFailure, UsageError } from '../../services/exit-codes.ts'
import {
  type AgentOptions,
  ALL_BACK,
  releasePods,
  type ReleaseOptions,
  startAgent,
  startRelease,
} from '../../services/operator/agent.ts'
import { faultText } from '../../operator/contract/field-fault.ts'
import { percentOfVariable } from '../../operator/contract/variables.ts'
import type { AgentClientOptions } from '../../operator/adapters/agent-client.ts'
import { untilSignal } from '../../services/until-signal.ts'
import { addressOf, addressText, hostAndPort } from '../command/addresses.ts'

interface AgentArguments {
  readonly operator?: string
  readonly certificates?: string
  readonly token?: string
  readonly state: string
  readonly node?: string
  readonly cgroups: string
  readonly device: AgentOptions['device']
  readonly inventory?: string
  readonly hostSwapMib?: number
  readonly idleAfter: number
  readonly admin: string
  readonly release?: boolean
  readonly stay?: boolean
}

export async function agent(given: AgentArguments): Promise<number> {
  const node = given.node ?? process.env['NODE_NAME']
  if (!node) throw new UsageError('the node name is unknown. Use --node, or set NODE_NAME.')
  const { state: stateFolder, cgroups, device, inventory, hostSwapMib, idleAfter: idleAfterMs } = given
  const options: AgentOptions = {
    ...{ node, stateFolder, cgroups, device, idleAfterMs },
    ...(inventory === undefined ? {} : { inventory }),
    ...(hostSwapMib === undefined ? {} : { hostSwapMib }),
    onNote: (line) => process.stderr.write(`headroom: ${line}\n`),
  }
  const admin = addressOf('--admin', given.admin)
  if (given.stay === true && given.release !== true) throw new UsageError('--stay requires --release')
  try {
    if (given.release === true) return await release({ ...options, admin }, given.stay === true)
    const running = await startAgent({ ...options, operator: operatorOf(given), admin })
    process.stdout.write(
      `Headroom agent of node ${node} is running${overcommitAtStart(options)}; ` +
        `metrics on ${addressText(admin, running.adminPort)}; press Ctrl-C to stop\n`,
    )
    await untilSignal()
    await running.stop()
    return EXIT_OK
  } catch (error) {
    const isOneLine = error instanceof Error && ['AcceleratorFault', 'StateFault'].includes(error.name)
    throw isOneLine ? new CommandFailure(error.message) : error
  }
}

/** The operator decides: the variable only says what applied when the pod was created. */
function overcommitAtStart({ onNote }: AgentOptions): string {
  const percent = percentOfVariable(process.env)
  if (percent.ok) return percent.value === null ? '' : ` with ${percent.value}% overcommit`
  onNote(`ignored: ${percent.faults.map(faultText).join('; ')}`)
  return ''
}

async function release(options: ReleaseOptions, stays: boolean): Promise<number> {
  if (stays) {
    const running = await startRelease(options)
    process.stdout.write(
      `/readyz on ${addressText(options.admin, running.adminPort)}; press Ctrl-C to stop\n`,
    )
    await untilSignal()
    await running.stop()
    return EXIT_OK
  }
  const left = await releasePods(options)
  if (left.length > 0) throw new CommandFailure(`some pods are still swapped out: ${left.join('; ')}`)
  process.stdout.write(`${ALL_BACK}\n`)
  return EXIT_OK
}

function operatorOf({ operator, certificates, token }: AgentArguments): AgentClientOptions {
  if (operator === undefined || certificates === undefined || token === undefined)
    throw new UsageError('--operator, --certificates and --token are required, except with --release')
  return { ...hostAndPort('--operator', operator), certificates, tokenFile: token }
}
