/** `kubectl headroom doctor`: one line for each check of the stack, with what to do when it fails. */
import { EXIT_FAILED, EXIT_OK } from '../../services/exit-codes.ts'
import { CHECK_COLUMNS, type Check, fail, ok, warn } from '../doctor/check.ts'
import type { OutputFormat } from '../output/formats.ts'
import { type Out, printList } from '../output/table.ts'
import { admissionChecks, stackOf } from './doctor-admission.ts'
import { componentChecks, runtimeClassChecks } from './doctor-components.ts'
import { nodeChecks, resourceChecks } from './doctor-nodes.ts'
import { type ClusterApi, type KubectlOptions, withCluster } from './kubectl-api.ts'

export interface DoctorOptions extends KubectlOptions {
  readonly output: OutputFormat
}

export interface DoctorHow {
  /** Version of Kubernetes. */
  readonly version: string
  /** Namespace in which a test pod is created; default: the namespace of kubectl. */
  readonly namespace?: string
  readonly output: OutputFormat
  readonly now: number
  readonly out?: Out
}

export function doctor({ output, ...cluster }: DoctorOptions): Promise<number> {
  const { namespace } = cluster
  return withCluster(cluster, async (api) =>
    examine(api, {
      ...{ version: await api.version(), output, now: Date.now() },
      ...(namespace === undefined ? {} : { namespace }),
    }),
  )
}

export async function examine(api: ClusterApi, how: DoctorHow): Promise<number> {
  const stack = await stackOf(api)
  const found = [
    versionCheck(how.version),
    ...(await resourceChecks(api)),
    ...(await admissionChecks(api, stack, how.namespace)),
    ...(await componentChecks(api, stack, how.now)),
    ...(await nodeChecks(api)),
    ...(await runtimeClassChecks(api, stack.namespace)),
  ]
  await printList<Check>(found, CHECK_COLUMNS, how.output, how.out)
  return found.some(({ verdict }) => verdict === 'fail') ? EXIT_FAILED : EXIT_OK
}

/** The one on which the stack is tested. */
const TESTED_MINOR = 36

function versionCheck(version: string): Check {
  const minor = Number(/^v1\.(\d+)/.exec(version)?.[1] ?? Number.NaN)
  if (minor === TESTED_MINOR) return ok('kubernetes', version)
  return minor < TESTED_MINOR
    ? fail('kubernetes', `${version} is not supported`, `the stack requires 1.${TESTED_MINOR}`)
    : warn('kubernetes', `${version} is newer than the tested version 1.${TESTED_MINOR}`, null)
}
