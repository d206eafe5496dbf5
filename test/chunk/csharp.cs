using System;
using System.Collections.Generic;

namespace Example.Billing
{
    /// <summary>Money in one currency.</summary>
    public readonly struct Money
    {
        public decimal Amount { get; }
        public string Currency { get; }

        public Money(decimal amount, string currency)
        {
            Amount = amount;
            Currency = currency ?? throw new ArgumentNullException(nameof(currency));
        }

        public static Money operator +(Money a, Money b)
        {
            if (a.Currency != b.Currency) throw new InvalidOperationException();
            return new Money(a.Amount + b.Amount, a.Currency);
        }
    }

    public interface IInvoiceStore
    {
        Invoice Find(Guid id);
        void Save(Invoice invoice);
    }

    public enum Status { Draft, Sent, Paid }

    public class Invoice
    {
        private readonly List<Line> lines = new();
        public Guid Id { get; init; }

        [Obsolete("use Total")]
        public decimal Sum()
        {
            decimal total = 0;
            foreach (var line in lines) total += line.Price * line.Count;
            return total;
        }

        public event EventHandler Changed;

        ~Invoice()
        {
            lines.Clear();
        }
    }
}
