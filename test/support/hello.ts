/** The hello of a server with one GPU and without tasks, for tests that act as a node. */
import type { Hello } from '../../protocol/messages.ts'
import { nodeIdFromName } from '../../protocol/node-id.ts'

export const HELLO: Hello = {
  op: 'hello',
  node_id: nodeIdFromName('alpha'),
  name: 'alpha',
  address: '',
  gpus: [{ index: 0, model: 'm', physical_mib: 4000, foreign_mib: 0 }],
  host_swap_mib: 4000,
  signals_wanted: true,
  device: 'process',
  allow_exec: true,
  tasks: [],
  finished_unacked: [],
}
