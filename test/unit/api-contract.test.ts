import { apiContract } from '../support/api-contract.ts'
import { FakeController } from '../support/api-world.ts'

apiContract('a fake engine', async () => new FakeController())
