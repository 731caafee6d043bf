/** The connection of a component of the operator stack to the API server. */
import { KubeClient } from '../../operator/adapters/kube-client.ts'
import { inClusterConnection, kubeconfigConnection } from '../../operator/adapters/kube-connection.ts'
import { UsageError } from '../exit-codes.ts'
import { packageVersion } from '../package-info.ts'

export interface ClusterOptions {
  /** Else the ServiceAccount of the pod. */
  readonly kubeconfig?: string
  readonly context?: string
}

type Environment = Readonly<Record<string, string | undefined>>

/**
 * @param component for the log of the API server
 * @throws UsageError, KubeConfigError
 */
export function openCluster(given: ClusterOptions, env: Environment, component: string): KubeClient {
  const { kubeconfig, context } = given
  const connection =
    kubeconfig === undefined ? inClusterConnection(env) : kubeconfigConnection(kubeconfig, context)
  if (connection === null)
    throw new UsageError('not in a pod: KUBERNETES_SERVICE_HOST is not set. Use --kubeconfig FILE.')
  return new KubeClient(connection, { userAgent: `headroom-${component}/${packageVersion()}` })
}

/** @throws UsageError */
export function ownNamespace(given: string | undefined, env: Environment): string {
  const namespace = given ?? env['POD_NAMESPACE']
  if (namespace) return namespace
  throw new UsageError('the namespace is unknown. Use --namespace, or set POD_NAMESPACE.')
}
