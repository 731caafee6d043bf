/** A contact of a node counts from its arrival: the answer, with the lease, may wait for a commit (R5). */
import { expect, it } from 'vitest'
import { updateLiveness } from '../../controller/engine/inputs/nodes/liveness.ts'
import { ClusterBuilder, placementOf } from '../support/cluster-builder.ts'

const SECOND = 1000

it('A node with a contact after a long silence stays reachable until its next lease has ended', () => {
  const b = new ClusterBuilder({ heartbeat_seconds: 1, run_lease_seconds: 15 })
  const node = b.addNode({ id: 'n', gpus: [100] })
  b.advance(60 * SECOND)
  b.heartbeat(node)
  const task = b.submit()
  b.cycle()
  updateLiveness(b.cluster, b.now + 4 * SECOND)
  expect([node.status, task.state, placementOf(task).attempt]).toEqual(['suspect', 'assigned', 1])
  // Two leases of 15.75 s, and the margin of 5 s.
  updateLiveness(b.cluster, b.now + 36_499)
  expect([node.status, task.state]).toEqual(['unreachable', 'assigned'])
  updateLiveness(b.cluster, b.now + 36_500)
  expect([node.status, task.state]).toEqual(['unreachable', 'pending'])
})
