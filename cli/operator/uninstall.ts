import { errorText } from '../../protocol/error-text.ts'
import { CommandFailure, EXIT_NO_CONNECTION, EXIT_OK } from '../../services/exit-codes.ts'
import { openCluster, ownNamespace, type ClusterOptions } from '../../services/operator/cluster-access.ts'
import { uninstallStack } from '../../services/operator/uninstall.ts'

interface UninstallArguments extends ClusterOptions {
  readonly namespace?: string
  readonly agents: string
  readonly configuration: string
  readonly wait: number
}

export async function uninstall(given: UninstallArguments): Promise<number> {
  const namespace = ownNamespace(given.namespace, process.env)
  const api = openCluster(given, process.env, 'uninstall')
  const { agents, configuration, wait: waitMs } = given
  try {
    const left = await uninstallStack({
      ...{ api, namespace, agents, configuration, waitMs },
      onNote: (line) => process.stdout.write(`${line}\n`),
    })
    if (left.length === 0) return EXIT_OK
    const list = left.map((line) => `  ${line}`).join('\n')
    throw new CommandFailure(
      `some pods are still swapped out, and nothing was removed:\n${list}\n` +
        'End other pods on these nodes, then uninstall again. To keep Headroom installed, run `helm ' +
        'upgrade`, with Helm 4 `helm upgrade --force-conflicts`.',
    )
  } catch (error) {
    if (error instanceof CommandFailure) throw error
    throw new CommandFailure(
      `the request to the API server failed: ${errorText(error)}. Run the command again; it continues ` +
        `where it stopped.`,
      EXIT_NO_CONNECTION,
    )
  } finally {
    api.close()
  }
}
