/**
 * A template for each common kind of fault, for a node by its name. docs/scenario-format.md has all kinds.
 * Pure.
 */
export interface FaultTemplate {
  readonly name: string
  readonly of: (node: string) => Readonly<Record<string, unknown>>
}

export const FAULT_TEMPLATES: readonly FaultTemplate[] = [
  { name: 'A node loses power', of: (node) => ({ crash: node, for: '10m' }) },
  { name: 'The GPU server of a node restarts', of: (node) => ({ bounce: node }) },
  { name: 'A node is cut off from the network', of: (node) => ({ partition: node, for: '5m' }) },
  { name: 'Messages are lost', of: () => ({ drop: 'all', probability: 0.05, for: '10m' }) },
  { name: 'Messages are late', of: () => ({ delay: 'all', ms: 2000, for: '10m' }) },
  { name: 'A GPU falls off the bus', of: (node) => ({ gpu_lost: { node, gpu: 0 }, for: '10m' }) },
  { name: 'Swaps on a node are slow', of: (node) => ({ slow_swap: node, factor: 4, for: '30m' }) },
  {
    name: 'A node has too little host memory',
    of: (node) => ({ host_memory_short: node, mib: 65536, for: '30m' }),
  },
  { name: 'The clock of a node drifts', of: (node) => ({ clock_drift: node, ppm: 20000, for: '1h' }) },
  { name: 'The controller restarts', of: () => ({ restart: 'controller', for: '5s' }) },
]
