/** Runs that keep the semantics and that a rule of `sim fuzz` once took for failures. */
import { afterAll, describe, expect, it } from 'vitest'
import { createOperatorClients } from '../../services/runs/shared-operator-clients.ts'
import { scenarioOf } from '../../simulator/experiment/fuzz/build.ts'
import { drawDocument } from '../../simulator/experiment/fuzz/draw.ts'
import { judge } from '../../simulator/experiment/fuzz/judge.ts'

const operatorClients = createOperatorClients()
afterAll(() => operatorClients.close())

describe('a drawn run', { timeout: 60_000 }, () => {
  it.each([
    { seed: 4066407539, what: 'ends with a swapped-out task that a smaller GPU has no room for' },
    { seed: 4066481123, what: 'serves a return before a pending task that is not the first of its shape' },
  ])('$what', async ({ seed }) => {
    const { violations } = await judge(scenarioOf(drawDocument(seed)), operatorClients.openOperatorClient)
    expect(violations).toEqual([])
  })
})
