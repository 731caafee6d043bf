/** `kubectl headroom nodes`: the GPUs of the cluster as the operator reports them. */
import { byCodeUnits } from '../../controller/structures/order.ts'
import { GPU_NODE, type GPUNodeStatus } from '../../operator/contract/policies.ts'
import { type KubeObject, NOT_FOUND, KubeError, ownResource } from '../../operator/ports/kube-api.ts'
import { allObjects } from '../../operator/ports/all-objects.ts'
import { CommandFailure, EXIT_NOT_FOUND, EXIT_OK } from '../../services/exit-codes.ts'
import { size } from '../output/figures.ts'
import type { OutputFormat } from '../output/formats.ts'
import { type Column, cutTo, type Out, printList } from '../output/table.ts'
import { type ClusterApi, type KubectlOptions, withCluster } from './kubectl-api.ts'

export interface GpuNode {
  readonly name: string
  readonly status: GPUNodeStatus
}

export interface NodesOptions extends KubectlOptions {
  readonly output: OutputFormat
}

export function nodes({ output, ...cluster }: NodesOptions): Promise<number> {
  return withCluster(cluster, (api) => printNodes(api, output))
}

export async function printNodes(api: ClusterApi, output: OutputFormat, out?: Out): Promise<number> {
  const found = await gpuNodes(api)
  if (found.length === 0 && (output === 'table' || output === 'wide'))
    throw new CommandFailure(
      'Headroom does not manage any nodes. Label a node: kubectl label node NODE headroom.dev/enabled=true.',
      EXIT_NOT_FOUND,
    )
  await printList(found, COLUMNS, output, out)
  return EXIT_OK
}

/**
 * Returns the GPU nodes in the order of their names.
 * @throws CommandFailure if the cluster does not know the resource
 */
export async function gpuNodes(api: ClusterApi): Promise<readonly GpuNode[]> {
  const found = await allObjects(api, ownResource(GPU_NODE)).catch((error: unknown): never => {
    if (error instanceof KubeError && error.code === NOT_FOUND)
      throw new CommandFailure(
        'Headroom is not installed in this cluster: the resource GPUNode does not exist.',
        EXIT_NOT_FOUND,
      )
    throw error
  })
  return found.map(gpuNodeOf).toSorted((a, b) => byCodeUnits(a.name, b.name))
}

function gpuNodeOf({ metadata, ...object }: KubeObject): GpuNode {
  return { name: metadata.name ?? '', status: (object['status'] ?? {}) as GPUNodeStatus }
}

/** The first thing that is wrong with the node, by the reason of its condition. */
export function stateOf({ status: { conditions = [] } }: GpuNode): string {
  if (conditions.length === 0) return 'Unknown'
  const failing = ['Ready', 'AgentReady'].map((name) =>
    conditions.find(({ type, status }) => type === name && status !== 'True'),
  )
  return failing.find((each) => each !== undefined)?.reason ?? 'Ready'
}

const MAX_NAME = 20

const COLUMNS: readonly Column<GpuNode>[] = [
  { title: 'NODE', of: ({ name }) => name, brief: ({ name }) => cutTo(MAX_NAME, name) },
  {
    title: 'STATE',
    of: stateOf,
    colour: (text, _node, palette) => (text === 'Ready' ? palette.green(text) : palette.yellow(text)),
  },
  { title: 'GPUS', isNumber: true, of: ({ status }) => status.gpuCount ?? null },
  { title: 'VRAM', isNumber: true, of: ({ status }) => sizeOf(status.physicalMib) },
  { title: 'LIMIT', isNumber: true, of: ({ status }) => sizeOf(status.effectiveMib) },
  { title: 'COMMITTED', isNumber: true, of: ({ status }) => sizeOf(status.committedMib) },
  { title: 'OUT', isNumber: true, of: ({ status }) => sizeOf(status.swappedOutMib) },
  { title: '%', isNumber: true, of: ({ status }) => status.overcommit?.percent ?? null },
  { title: 'PODS', isNumber: true, of: ({ status }) => status.claims?.length ?? 0 },
  { title: 'FOREIGN', isWide: true, isNumber: true, of: ({ status }) => sizeOf(foreignMib(status)) },
  { title: 'SOURCE', isWide: true, of: ({ status }) => status.overcommit?.source ?? null },
  { title: 'MODEL', isWide: true, of: ({ status }) => modelsOf(status) },
]

function sizeOf(mib: number | undefined): string | null {
  return mib === undefined ? null : size(mib)
}

function foreignMib({ gpus = [] }: GPUNodeStatus): number {
  return gpus.reduce((sum, gpu) => sum + gpu.foreignMib, 0)
}

function modelsOf({ gpus = [] }: GPUNodeStatus): string {
  return [...new Set(gpus.flatMap(({ model }) => (model === undefined ? [] : [model])))].join(',')
}
