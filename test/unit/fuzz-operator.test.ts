/** An unexpected answer to an operator request is a finding of `sim fuzz`, as of `sim check`. */
import { afterAll, describe, expect, it } from 'vitest'
import { createOperatorClients } from '../../services/runs/shared-operator-clients.ts'
import { scenarioOf } from '../../simulator/experiment/fuzz/build.ts'
import type { Entry, FuzzDocument } from '../../simulator/experiment/fuzz/document.ts'
import { drawDocument } from '../../simulator/experiment/fuzz/draw.ts'
import { judge, type Verdict } from '../../simulator/experiment/fuzz/judge.ts'
import { shrink } from '../../simulator/experiment/fuzz/shrink.ts'
import type { OpenOperatorClient } from '../../simulator/run/run.ts'

const SEEDS = Array.from({ length: 200 }, (_, index) => index + 1)
const operatorClients = createOperatorClients()
afterAll(() => operatorClients.close())

const DRAWN = drawDocument(11)

function withOperator(operator: readonly Entry[], faults: readonly Entry[] = []): FuzzDocument {
  const fleet = [{ name: 'n0', gpu: { vram_mib: 1000 } }]
  return { ...DRAWN, fleet, config: {}, workload: [], faults, operator, clock: { until: '2m' } }
}

function judged(
  document: FuzzDocument,
  openOperatorClient: OpenOperatorClient = operatorClients.openOperatorClient,
): Promise<Verdict> {
  return judge(scenarioOf(document), openOperatorClient)
}

/** A controller that refuses to undo a cordon. */
const lying: OpenOperatorClient = async (world, pump) => {
  const client = await operatorClients.openOperatorClient(world, pump)
  return {
    ask: (method, path, body, headers) =>
      path.endsWith('/uncordon')
        ? Promise.resolve({ status: 409, text: '{"code":"conflict"}' })
        : client.ask(method, path, body, headers),
    close: () => client.close(),
  }
}

const config = { at: '1000ms', put: '/api/v1/config', body: { default_vram_overcommit_percent: 50 } }

describe('an answer to an operator', () => {
  it('is as expected, by status and content, or is reported as a finding', async () => {
    const asExpected = { ...config, expect: 200, answer: { default_vram_overcommit_percent: 50 } }
    expect((await judged(withOperator([asExpected]))).violations).toEqual([])
    expect((await judged(withOperator([{ ...config, expect: 409 }]))).violations).toEqual([
      {
        rule: 'operator_answer',
        sentence: expect.stringContaining('was answered 200, expected is 409') as string,
      },
    ])
    const { violations } = await judged(
      withOperator([{ ...asExpected, answer: { default_vram_overcommit_percent: 60 } }]),
    )
    expect(violations).toMatchObject([
      { rule: 'operator_answer', sentence: expect.stringContaining('is 50, expected is 60') as string },
    ])
  })

  it('A wrong answer counts during faults too: the operator retries until a controller answers', async () => {
    const crash = { at: '900ms', crash: 'controller', for: '10000ms' }
    expect((await judged(withOperator([{ ...config, expect: 200 }], [crash]))).violations).toEqual([])
    expect((await judged(withOperator([{ ...config, expect: 202 }], [crash]))).violations).toMatchObject([
      { rule: 'operator_answer' },
    ])
  })

  it('The expected answer is known if it does not depend on the run', () => {
    const actions = SEEDS.flatMap((seed) => drawDocument(seed).operator)
    const checked = actions.filter((action) => 'expect' in action)
    expect(checked.length).toBeGreaterThan(actions.length / 4)
    expect(checked.some((action) => 'answer' in action)).toBe(true)
  })

  it(
    'is found in drawn seeds if it is wrong, and the failure shrinks to that action',
    { timeout: 60_000 },
    async () => {
      const seed = SEEDS.find((each) =>
        drawDocument(each).operator.some((action) => String(action['post']).endsWith('/uncordon')),
      )
      const document = drawDocument(Number(seed))
      const fails = async (one: FuzzDocument): Promise<boolean> => {
        try {
          return (await judged(one, lying)).violations.some(({ rule }) => rule === 'operator_answer')
        } catch {
          return false
        }
      }
      expect(await fails(document)).toBe(true)
      const { document: small } = await shrink(document, fails, 400)
      expect(small.operator).toEqual([
        {
          at: expect.any(String) as string,
          post: expect.stringContaining('/uncordon') as string,
          expect: 200,
        },
      ])
      expect(small.faults).toEqual([])
    },
  )
})
