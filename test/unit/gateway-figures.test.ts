import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { Endpoint } from '../../services/gateway/endpoint.ts'
import { GatewayFigures } from '../../services/gateway/gateway-figures.ts'
import { parseExposition } from '../support/prometheus-parser.ts'

const DOCS = readFileSync(new URL('../../docs/serving.md', import.meta.url), 'utf8')

test('A gateway has the metrics that docs/serving.md lists, each with its type and labels', async () => {
  const endpoint = new Endpoint('alice', 'chat', 0)
  const figures = new GatewayFigures(
    () => [endpoint],
    () => 0,
  )
  figures.answered(endpoint, 200)
  figures.refused(endpoint, 'full')
  figures.failed(endpoint, 'broken')
  figures.stranger('token')
  figures.woken(endpoint, 1_000)
  const families = parseExposition(await figures.metrics.text())
  const documented = [...DOCS.matchAll(/^\| `(headroom_gateway_\w+)` \| (\w+) \|([^|]*)\|/gm)]
  expect(new Set(documented.map(([, name]) => name))).toEqual(new Set(families.keys()))
  for (const [, name = '', type, labels = ''] of documented) {
    const family = families.get(name)
    const named = [...(family?.samples[0]?.labels.keys() ?? [])].filter((label) => label !== 'le')
    expect([name, family?.type, named.join(', ')]).toEqual([name, type, labels.trim()])
  }
})
