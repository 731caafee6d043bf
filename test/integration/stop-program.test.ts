/** A program that handles SIGTERM gets its stop grace in every kind of stop: real processes end to end. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { headroom } from '../support/headroom-command.ts'
import { LiveCluster } from '../support/live-cluster.ts'
import { whyNoNatsServer } from '../support/nats-server.ts'
import { startHeadroom, type RunningCommand } from '../support/running-command.ts'

const INVENTORY = 'gpus:\n  - { vram_mib: 24Gi }\n'

interface Task {
  readonly id: string
  readonly state: string
  readonly end_code: string | null
  readonly exit_code: number | null
}

describe.skipIf(whyNoNatsServer() !== null)(
  'A training program that saves a checkpoint on SIGTERM',
  { timeout: 300_000 },
  () => {
    let cluster: LiveCluster
    beforeAll(async () => {
      cluster = await LiveCluster.start()
      await cluster.startServer('alpha', INVENTORY)
    }, 120_000)
    afterAll(() => cluster.end())

    /** Takes `takesS` seconds to save. */
    const program = (name: string, takesS: number): readonly string[] => {
      const saves = `trap 'sleep ${takesS}; echo saved > ${cluster.path(name)}; exit 0' TERM`
      return ['sh', '-c', `${saves}; echo ready; while :; do sleep 0.05; done`]
    }
    const env = (): Record<string, string> => ({ VENDOR_CONTROLLER_URL: cluster.url })
    const theTask = async (name: string): Promise<Task> => {
      const { items } = await cluster.get<{ readonly items: readonly (Task & { readonly name: string })[] }>(
        '/tasks?state=all&limit=100',
      )
      const task = items.find((each) => each.name === name)
      if (task === undefined) throw new Error(`no task ${name}`)
      return task
    }
    const run = async (
      name: string,
      takesS: number,
      ...options: readonly string[]
    ): Promise<RunningCommand> => {
      const running = startHeadroom(
        ['run', '--vram', '1Gi', '--name', name, ...options, '--', ...program(name, takesS)],
        env(),
      )
      await running.says(/^ready$/m)
      return running
    }
    const isSaved = (name: string): boolean => existsSync(join(cluster.folder, name))

    it('saves it on Ctrl-C of headroom run', async () => {
      const running = await run('ctrl-c', 1)
      running.process.kill('SIGINT')
      expect(await running.ended).toBe(130)
      expect([isSaved('ctrl-c'), (await theTask('ctrl-c')).end_code]).toEqual([true, 'cancelled'])
    })

    it('is killed at once by a second Ctrl-C', async () => {
      const running = await run('twice', 30)
      running.process.kill('SIGINT')
      await running.says(/press Ctrl-C again to kill it immediately/)
      running.process.kill('SIGINT')
      expect(await running.ended).toBe(130)
      expect(isSaved('twice')).toBe(false)
    })

    it('saves it on headroom task cancel, and at the end of max_runtime_seconds', async () => {
      const cancelled = await run('cancel', 1)
      const { id } = await theTask('cancel')
      expect(await headroom(['task', 'cancel', id], { env: env() })).toMatchObject({ code: 0 })
      await cancelled.ended
      const limited = await run('limited', 1, '--max-runtime', '1')
      await limited.ended
      expect([isSaved('cancel'), isSaved('limited')]).toEqual([true, true])
      expect([(await theTask('cancel')).end_code, (await theTask('limited')).end_code]).toEqual([
        'cancelled',
        'max_runtime',
      ])
    })

    it('is killed at the end of its grace', async () => {
      const running = await run('slow', 30, '--stop-grace', '1s')
      running.process.kill('SIGINT')
      await running.ended
      expect([isSaved('slow'), (await theTask('slow')).end_code]).toEqual([false, 'cancelled'])
    })
  },
)
