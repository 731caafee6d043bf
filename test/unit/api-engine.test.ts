import { apiContract } from '../support/api-contract.ts'
import { realEngine } from '../support/real-engine.ts'

apiContract('the real engine', realEngine)
