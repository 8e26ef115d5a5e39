// A client for kwire check: produces five records and reads them in a group, for some seconds. Run it as
// kwire check --client 'node tests/interop/kafkajs/check.js {broker} {topic}', NODE_PATH naming where kafkajs is.
const { Kafka, logLevel } = require('kafkajs')

const COUNT = 5
const READING = 12000 // ms
const [broker, topic] = process.argv.slice(2)
const pause = ms => new Promise(done => setTimeout(done, ms))

async function main() {
  const kafka = new Kafka({ clientId: 'check', brokers: [broker], logLevel: logLevel.ERROR })
  const producer = kafka.producer({ idempotent: true })
  await producer.connect()
  for (let number = 0; number < COUNT; number++) {
    await producer.send({ topic, messages: [{ value: String(number) }] })
    await pause(100)
  }
  await producer.disconnect()
  const consumer = kafka.consumer({ groupId: 'check', sessionTimeout: 6000, heartbeatInterval: 500, maxWaitTimeInMs: 200 })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  let count = 0
  await consumer.run({ autoCommitInterval: 500, eachMessage: async () => { count++ } })
  await pause(READING)
  await consumer.disconnect()
  process.exit(count >= COUNT ? 0 : 3)
}

main().catch(error => { console.error(error.message); process.exit(1) })
