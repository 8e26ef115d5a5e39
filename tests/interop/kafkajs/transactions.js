// Three transactions of kafkajs, the second aborted, against the address in the first argument. Prints what a reader of
// committed records sees (kafkajs reads only those unless told otherwise).
const { Kafka, logLevel } = require('kafkajs')

const kafka = new Kafka({ clientId: 'js', brokers: [process.argv[2]], logLevel: logLevel.ERROR })

async function main() {
  const producer = kafka.producer({ transactionalId: 'tx', maxInFlightRequests: 1, idempotent: true })
  await producer.connect()
  for (const n of [1, 2, 3]) {
    const transaction = await producer.transaction()
    await transaction.send({ topic: 'out', messages: [{ value: 'v' + n }] })
    if (n === 2) await transaction.abort()
    else {
      const offsets = [{ topic: 'out', partitions: [{ partition: 0, offset: String(n) }] }]
      await transaction.sendOffsets({ consumerGroupId: 'g', topics: offsets })
      await transaction.commit()
    }
  }
  const consumer = kafka.consumer({ groupId: 'reader', sessionTimeout: 6000, maxWaitTimeInMs: 200 })
  await consumer.connect()
  await consumer.subscribe({ topic: 'out', fromBeginning: true })
  const seen = []
  await new Promise(done => consumer.run({
    eachMessage: async ({ message }) => { seen.push(String(message.value)); if (seen.length === 2) done() }
  }))
  console.log(seen.join(' '))
  for (const one of [consumer, producer]) await one.disconnect()
}

main().catch(error => { console.error(error); process.exit(1) })
