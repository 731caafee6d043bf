import { expect, it } from 'vitest'
import { nodeNamed } from '../../cli/command/session.ts'
import { createClient } from '../../clients/typescript/client.ts'
import { NODE_ID } from '../support/api-world.ts'
import { askedApi } from '../support/asked.ts'

it('An unknown name of a node is answered with the nearest name, if one is near', async () => {
  const { world, url } = await askedApi()
  await world.addNode({ id: NODE_ID, gpus: 1, physicalMib: 49_140 })
  for (const node of world.nodes.values()) node.name = 'a100-1'
  const client = createClient({ url })
  expect((await nodeNamed(client, 'a100-1')).node_id).toBe(NODE_ID)
  await expect(nodeNamed(client, 'a10-1')).rejects.toThrow(/^Node "a10-1" not found\. Did you mean a100-1\?$/)
  await expect(nodeNamed(client, 'zebra')).rejects.toThrow(/^Node "zebra" not found\.$/)
})
