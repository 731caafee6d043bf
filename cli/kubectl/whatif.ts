/** `kubectl headroom whatif`: the sweep of `headroom whatif --kubernetes` over what the cluster has now. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { KubeError } from '../../operator/ports/kube-api.ts'
import { whatif as whatifOfFile, type WhatifOptions } from '../kubernetes/whatif.ts'
import { type KubectlApi, type KubectlOptions, withCluster } from './kubectl-api.ts'

type Options = KubectlOptions & Omit<WhatifOptions, 'kubernetes' | 'server' | 'tokenFile'>

export function whatif({ namespace, context, kubeconfig, ...options }: Options): Promise<number> {
  const cluster: KubectlOptions = {
    ...(namespace === undefined ? {} : { namespace }),
    ...(context === undefined ? {} : { context }),
    ...(kubeconfig === undefined ? {} : { kubeconfig }),
  }
  return withCluster(cluster, async (api) => {
    const text = await clusterText(api)
    const folder = mkdtempSync(join(tmpdir(), 'headroom-kubectl-'))
    try {
      const file = join(folder, 'cluster.json')
      writeFileSync(file, text)
      return await whatifOfFile({ ...options, kubernetes: file })
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
}

/** Without classes and groups for a user who may not read PriorityClasses or namespaces. */
export async function clusterText(api: Pick<KubectlApi, 'everything'>): Promise<string> {
  try {
    return await api.everything('pods', 'nodes', 'namespaces', 'priorityclasses')
  } catch (error) {
    if (error instanceof KubeError && error.code === 403) return api.everything('pods', 'nodes')
    throw error
  }
}
