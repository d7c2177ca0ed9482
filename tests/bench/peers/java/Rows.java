/** The values of the topics; the fields are the columns of the SQL side. */
final class Rows {
  private Rows() {}

  /** What the orders' topics hold. */
  public static final class Order {
    public long ID;
    public int AMOUNT;
    public String NAME;
    public double PRICE;
  }

  /** What the payments' topic holds. */
  public static final class Payment {
    public long PAID;
  }

  /** What the users' topic holds. */
  public static final class User {
    public String NAME;
    public String REGION;
  }

  /** An order that passes the filter. */
  public static final class Labelled {
    public long ID;
    public int AMOUNT;
    public String LABEL;
  }

  /** The aggregate of a key. */
  public static final class Totals {
    public long C;
    public long S;
  }

  /** The count of a key in a window. */
  public static final class Count {
    public long C;
  }

  /** An order with its user. */
  public static final class Joined {
    public long ID;
    public int AMOUNT;
    public String NAME;
    public String REGION;
  }

  /** An order with a payment. */
  public static final class Paired {
    public long ID;
    public int AMOUNT;
    public long PAID;
  }
}
